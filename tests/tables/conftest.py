"""What several tests of this room share."""

from __future__ import annotations

import warnings

import pytest


@pytest.fixture(scope="session")
def spark_session():
    """A local session with two workers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sql = pytest.importorskip("pyspark.sql", reason='pyspark is missing: pip install "discreet[spark]"')
        quick = {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "3g",  # plans of long expressions are large, and some are kept
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.log.level": "OFF",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.adaptive.enabled": "false",
            # few rows: a second compiler and its threads cost more than they save
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        builder = sql.SparkSession.builder.master("local[2]").appName("discreet")
        for name, value in quick.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    yield session
    session.stop()
