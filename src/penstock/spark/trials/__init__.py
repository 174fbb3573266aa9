"""What benchmarks and tests hold against Penstock: queries written by hand in plain Spark, and a broker to run on.

Nothing of the product imports this room.
"""
