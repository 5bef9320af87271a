#!/bin/sh
# Starts this member's server and stays with it to its end. A second one finds the ports taken and ends.
home=/opt/ibm/WebSphere/eXtremeScale
export XSLD_NANNY_LOG="${XSLD_NANNY_LOG:-$home/wlp/startscripts/nanny/log/nanny.log}"
export XSLD_CATALOG_COMMAND="$home/wxs/cs-default"
exec "$home/wxs/xsld" member
