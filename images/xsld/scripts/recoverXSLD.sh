#!/bin/sh
# Writes where the others are into this member's records: ALIAS IP HOST of each other member.
exec /opt/ibm/WebSphere/eXtremeScale/wxs/xsld recover "$@"
