module moorage.dev/xsld

go 1.26.0
