"""OpenCGA's own configuration classes, as far as they are published: by them is tried what agents render.

    python -m dev.opencga    writes the table of the keys that they know, for moorage to warn of others

Needs Java 17 and Maven, whose ordinary client brings the jars of the .xml files into build/opencga-product, once; the
.sha256 files say what each must be. Of the product's servers that of storage alone is published, of version 3.4.0.
"""
