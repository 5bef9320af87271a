module moorage.dev/weka

go 1.26.0
