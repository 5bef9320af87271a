module moorage.dev/opencga

go 1.26.0
