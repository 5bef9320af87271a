#!/bin/sh
# Stops this member's server and waits until it has handed over what it holds. If that hangs, kill the process named
# cs-default and run this again.
exec /opt/ibm/WebSphere/eXtremeScale/wxs/xsld stop
