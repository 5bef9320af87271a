module moorage.dev/opencga-hook

go 1.26.0
