"""OpenCGA's own configuration classes, as far as they are published: by them is tried what agents render.

    python -m dev.opencga    writes the table of the keys that they know, for moorage to warn of others

Needs Java 17 and Maven, whose ordinary client brings the jars of pom.xml into build/opencga-classes, once; jars.sha256
says what each must be. Whatever else the product is made of, its servers too, was not to be had.
"""
