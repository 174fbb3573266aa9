"""Counts words: sentences are split into words, and words are counted as they come."""

from penstock import job, topic

sentences = topic("sentences", schema="line string")
words = topic("words", schema="word string", key="word")
counts = topic("counts", schema="word string, n long", key="word")


@job(reads=sentences, writes=words)
def split(lines):
    return lines.selectExpr("explode(split(line, ' ')) as word")


@job(reads=words, writes=counts, mode="update", slo_lag="30s")
def count(words):
    return words.groupBy("word").count().withColumnRenamed("count", "n")
