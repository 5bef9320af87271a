module moorage.dev/kre/minio

go 1.26.0
