module moorage.dev/kre/fetcher

go 1.26.0
