module moorage.dev/kre/mongo

go 1.26.0

// Its commands are built with one more file among them, see stage.
require github.com/FerretDB/FerretDB v1.24.2
