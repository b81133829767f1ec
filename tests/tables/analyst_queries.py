"""What analysts ask: a list of SELECTs, broad on purpose, with what becomes of each.

``ANSWERED`` are answered on every engine; ``REFUSED`` before anything is charged, with the nearest form that is.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import polars as pl

import discreet as dp

SCHEMA = dp.Schema(
    age=dp.Bounded(0, 120),
    income=dp.Bounded(0, 200_000),
    hours=dp.Bounded(0, 100),
    sex=dp.Categories(["f", "m"]),
    educ=dp.Categories(range(1, 6)),
    region=dp.Categories(["north", "south", "east", "west"]),
    married=dp.Categories([False, True]),
    city=dp.Unlisted(),
    day=dp.Dates("2023-01-01", "2024-12-31"),
    at=dp.Times("2023-01-01", "2024-12-31"),
)
DELTA = 1e-4  # for those that group by what is private


def rows(size: int = 3000, seed: int = 5) -> pl.DataFrame:
    """Visits, with what is missing, zero, outside of the declarations or written in another way."""
    rng = np.random.default_rng(seed)
    start = dt.datetime(2023, 1, 1)
    at = [start + dt.timedelta(seconds=int(s)) for s in rng.integers(0, 730 * 86_400, size)]
    cities = np.array(["Paris", " paris", "PARIS ", "Lyon", "lyon", "Nice", "St. Denis", None], object)
    hours = np.where(rng.random(size) < 0.1, 0.0, rng.uniform(1, 60, size).round(1))
    return pl.DataFrame(
        {
            "person_id": np.arange(size),
            "age": rng.integers(-3, 130, size),
            "income": np.where(rng.random(size) < 0.05, np.nan, rng.gamma(2.0, 20_000.0, size).round(2)),
            "hours": [None if i % 17 == 0 else float(h) for i, h in enumerate(hours)],
            "sex": rng.choice(["f", "m", "x"], size, p=[0.5, 0.45, 0.05]),
            "educ": rng.integers(1, 6, size),
            "region": rng.choice(["north", "south", "east", "west"], size),
            "married": rng.random(size) < 0.4,
            "city": pl.Series(rng.choice(cities, size).tolist(), dtype=pl.String),
            "day": [moment.date() for moment in at],
            "at": at,
        }
    )


def regions() -> Any:
    """A public table to look regions up in."""
    return pl.DataFrame(
        {"region": ["north", "south", "east"], "zone": ["cold", "warm", "mild"], "tax": [0.1, 0.2, 0.3]}
    )


_BY_AGE = "CASE WHEN age < 30 THEN 'young' WHEN age < 65 THEN 'middle' ELSE 'old' END"

ANSWERED = [
    # dates and times
    "SELECT EXTRACT(YEAR FROM day) AS y, COUNT(*) FROM visits GROUP BY y",
    "SELECT date_trunc('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY month ORDER BY month",
    "SELECT dayofweek(at) AS weekday, AVG(income) FROM visits GROUP BY 1",
    "SELECT EXTRACT(HOUR FROM at) AS h, COUNT(*) FROM visits GROUP BY h ORDER BY COUNT(*) DESC LIMIT 3",
    "SELECT COUNT(*) FROM visits WHERE day >= '2023-06-01' AND day < DATE '2023-07-01'",
    "SELECT COUNT(*) FROM visits WHERE at BETWEEN TIMESTAMP '2023-06-01 12:00:00' AND '2023-06-30 18:30:00'",
    "SELECT quarter(day) AS q, year(day) AS y, SUM(income) FROM visits GROUP BY 1, 2",
    "SELECT AVG(date_diff('day', DATE '2023-01-01', day)) AS mean_day FROM visits",
    "SELECT month(day), COUNT(*) FROM visits WHERE year(day) = 2024 GROUP BY month(day)",
    "SELECT AVG(week(day)) AS w, COUNT(*) AS n FROM visits WHERE EXTRACT(DOY FROM day) > 100",
    "SELECT sex, AVG(income) FROM visits WHERE day > DATE '2023-06-01' - INTERVAL 30 DAY GROUP BY sex",
    "SELECT COUNT(*) FROM visits WHERE date_trunc('quarter', date_add(day, INTERVAL 1 DAY)) = DATE '2023-04-01'",
    # text
    "SELECT COUNT(*) FROM visits WHERE city LIKE 'P%'",
    "SELECT COUNT(*) FROM visits WHERE lower(trim(city)) = 'paris'",
    "SELECT COUNT(*) FROM visits WHERE lower(city) IN ('lyon', 'nice') AND sex <> 'm'",
    "SELECT COUNT(*) FROM visits WHERE city NOT LIKE '%Denis' AND city IS NOT NULL",
    "SELECT upper(sex) AS s, COUNT(*) FROM visits GROUP BY upper(sex)",
    "SELECT lower(trim(city)) AS town, COUNT(*) FROM visits GROUP BY town",
    "SELECT CASE lower(trim(city)) WHEN 'paris' THEN 'Paris' WHEN 'lyon' THEN 'Lyon' ELSE 'other' END AS c, COUNT(*) "
    "FROM visits GROUP BY c",
    "SELECT left(region, 1) AS initial, COUNT(*) FROM visits GROUP BY initial",
    "SELECT COUNT(*) FROM visits WHERE city LIKE 'P_ris' OR city ILIKE '%d_n%s'",
    "SELECT sex || '-' || region AS who, COUNT(*) FROM visits GROUP BY who",
    "SELECT length(region) AS letters, COUNT(*) FROM visits WHERE length(city) > 4 GROUP BY letters",
    # CASE, casts, COALESCE, %, booleans
    f"SELECT {_BY_AGE} AS band, AVG(income) FROM visits GROUP BY band",
    f"SELECT {_BY_AGE} AS band, sex, COUNT(*) FROM visits GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM visits GROUP BY decade",
    "SELECT CAST(age AS INTEGER) % 10 AS last_digit, COUNT(*) FROM visits GROUP BY last_digit",
    "SELECT age >= 65 AS senior, AVG(income) FROM visits GROUP BY senior",
    "SELECT married, COUNT(*) FROM visits WHERE NOT married OR age > 30 GROUP BY married",
    "SELECT AVG(CAST(married AS INTEGER)) AS share FROM visits",
    "SELECT AVG(COALESCE(hours, 0)) FROM visits",
    "SELECT SUM(CASE WHEN age > 40 THEN income ELSE 0 END) FROM visits",
    "SELECT COALESCE(NULLIF(hours, 0), 40) > 35 AS full_time, COUNT(*) FROM visits GROUP BY full_time",
    "SELECT AVG(GREATEST(income - 10000, 0)) FROM visits",
    "SELECT AVG(LEAST(income / NULLIF(hours, 0), 5000)) FROM visits WHERE hours > 1",
    "SELECT AVG(ROUND(income)) FROM visits WHERE age IS NOT NULL AND educ <> 3",
    "SELECT TRUNC(age / 10) AS tens, AVG(SIGN(hours - 30)) AS side FROM visits GROUP BY 1",
    "SELECT AVG(ROUND(LOG(income + 1), 2)) FROM visits",
    "SELECT IF(age > 40, 'over', 'under') AS side, COUNT(*) FROM visits GROUP BY side",
    # aggregates
    "SELECT AVG(hours * educ) FROM visits",
    "SELECT SUM(income / 1000 + 2 * hours) AS total FROM visits",
    "SELECT COUNT(*) FILTER (WHERE age > 40) AS over, COUNT(*) AS n FROM visits",
    "SELECT COUNT_IF(income > 50000) FROM visits",
    "SELECT AVG(income) FILTER (WHERE sex = 'f') AS f, AVG(income) FILTER (WHERE sex = 'm') AS m FROM visits",
    "SELECT STDDEV(income), STDDEV_POP(age), VARIANCE(hours) FROM visits",
    "SELECT CORR(age, income) FROM visits",
    "SELECT COVAR_POP(age, hours), COVAR_SAMP(age, hours) FROM visits",
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY income) FROM visits",
    "SELECT sex, QUANTILE_CONT(income, 0.25), MEDIAN(income), QUANTILE_CONT(income, 0.75) FROM visits GROUP BY sex",
    "SELECT QUANTILE_CONT(income, [0.1, 0.5, 0.9]) AS spread FROM visits",
    "SELECT COUNT(1), COUNT(hours), COUNT(DISTINCT region) FROM visits",
    "SELECT COUNT(DISTINCT lower(trim(city))) FROM visits",
    "SELECT APPROX_COUNT_DISTINCT(city), APPROX_QUANTILE(age, 0.9) FROM visits",
    # names, ordinals, aliases
    "SELECT Educ, avg(INCOME) AS Pay FROM Visits AS v WHERE V.Age > 30 GROUP BY EDUC",
    "SELECT educ AS school, COUNT(*) FROM visits GROUP BY ALL",
    "SELECT educ AS school, COUNT(*) FROM visits GROUP BY school ORDER BY school DESC",
    # after the release
    "SELECT region, AVG(income) AS pay FROM visits GROUP BY region HAVING COUNT(*) > 100 ORDER BY pay DESC LIMIT 2",
    "SELECT region, SUM(income) / COUNT(*) AS pay, ROUND(100 * AVG(age)) / 100 AS age FROM visits GROUP BY region",
    "SELECT 100.0 * COUNT_IF(married) / COUNT(*) AS percent FROM visits",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY n DESC LIMIT 3",
    "SELECT sex, AVG(income) FROM visits GROUP BY sex ORDER BY 2 DESC OFFSET 1",
    # order, what is missing first or last, ties, names
    "SELECT region, CASE WHEN COUNT(*) > 740 THEN COUNT(*) END AS n FROM visits GROUP BY region ORDER BY n DESC NULLS "
    "FIRST, region LIMIT 3",
    "SELECT region, CASE WHEN COUNT(*) > 740 THEN COUNT(*) END AS n FROM visits GROUP BY region ORDER BY n NULLS "
    "FIRST, region DESC",
    "SELECT educ, CASE WHEN COUNT(*) > 600 THEN 'many' END AS size, COUNT(*) AS n FROM visits GROUP BY educ ORDER BY "
    "size DESC NULLS LAST, n LIMIT 4",
    "SELECT region, sex, COUNT(*) > 370 AS large FROM visits GROUP BY ALL ORDER BY large LIMIT 5",
    "SELECT sex AS region, COUNT(*) AS age FROM visits GROUP BY sex ORDER BY age DESC",
    "SELECT COUNT(*) AS n, region FROM visits GROUP BY region ORDER BY region LIMIT 2 OFFSET 1",
    'SELECT region, COUNT(*) AS "How many" FROM visits GROUP BY region ORDER BY "How many" DESC FETCH FIRST 2 ROWS '
    "ONLY",
    "SELECT educ, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total FROM visits GROUP BY educ ORDER BY n DESC",
    "SELECT region, AVG(income) AS pay FROM visits GROUP BY region ORDER BY -COUNT(*), pay",
    "SELECT married, educ, COUNT(*) AS n FROM visits GROUP BY married, educ ORDER BY 1 DESC, 3 DESC",
    # CTEs, subqueries, ROLLUP, CUBE, UNION
    "WITH adults AS (SELECT * FROM visits WHERE age >= 18) SELECT educ, COUNT(*) FROM adults GROUP BY educ",
    "SELECT band, AVG(wage) FROM (SELECT income / 12 AS wage, age > 40 AS band FROM visits WHERE hours > 5) GROUP BY 1",
    "WITH a AS (SELECT *, year(day) AS y FROM visits), b AS (SELECT y, income FROM a WHERE y > 2022) "
    "SELECT y, SUM(income) FROM b GROUP BY y",
    "SELECT region, sex, COUNT(*) FROM visits GROUP BY ROLLUP (region, sex)",
    "SELECT region, sex, COUNT(*) AS n FROM visits GROUP BY CUBE (region, sex)",
    "SELECT 'old' AS who, COUNT(*) AS n FROM visits WHERE age > 64 UNION ALL "
    "SELECT 'young' AS who, COUNT(*) AS n FROM visits WHERE age < 20",
    # joins
    "SELECT r.zone, COUNT(*) FROM visits v JOIN regions r ON v.region = r.region GROUP BY r.zone",
    "SELECT SUM(v.income * r.tax) FROM visits v LEFT JOIN regions r USING (region)",
    # intervals and differences of dates
    "SELECT COUNT(*) FROM visits WHERE day >= DATE '2023-01-31' + INTERVAL 1 MONTH AND day < DATE '2023-01-31' + "
    "INTERVAL '1' YEAR",
    "SELECT FLOOR((day - DATE '2023-01-01') / 30) AS period, COUNT(*) FROM visits GROUP BY period",
    "SELECT AVG(date_diff('day', DATE '2023-01-01', day + INTERVAL (educ) DAY)) AS later FROM visits",
    "SELECT date_diff('month', '2023-01-31', day) AS months, COUNT(*) FROM visits GROUP BY 1 HAVING COUNT(*) > 5",
    "SELECT day - DATE '2023-12-25' AS since, COUNT(*) FROM visits WHERE day BETWEEN DATE '2023-12-25' AND "
    "DATE '2023-12-25' + INTERVAL 3 DAY GROUP BY since HAVING COUNT(*) > 0",
]

REFUSED = [
    ("SELECT MAX(income) FROM visits", "QUANTILE_CONT"),
    ("SELECT * FROM visits LIMIT 5", "rows never leave"),
    ("SELECT AVG(income) OVER (PARTITION BY sex) FROM visits", "GROUP BY"),
    ("SELECT income, COUNT(*) FROM visits GROUP BY income", "FLOOR"),
    ("SELECT AVG(1 / hours) FROM visits", "LEAST"),
    ("SELECT STRING_AGG(city, ',') FROM visits", "STRING_AGG, LISTAGG"),
    ("SELECT LIST(city) FROM visits", "and LIST are not supported, because they show single rows"),
    ("SELECT COUNT(*) FROM visits WHERE income > (SELECT AVG(income) FROM visits)", "release"),
    ("SELECT COUNT(*) FROM visits a JOIN visits b ON a.city = b.city", "lookup"),
    ("SELECT MODE(region) FROM visits", "ORDER BY COUNT"),
    ("SELECT COUNT(*) FROM visits WHERE city LIKE 'P!_' ESCAPE '!'", "LIKE 'a_c%'"),
    ("SELECT AVG(ROUND(income, 400)) FROM visits", "from -15 to 15"),
    ("SELECT COUNT(*) FROM visits WHERE left(city, -1) = 'Pari'", "from 0 to"),
    ("SELECT strftime(day, '%Y-%m') AS m, COUNT(*) FROM visits GROUP BY m", "date_trunc"),
    ("SELECT concat(sex, region) AS k, COUNT(*) FROM visits GROUP BY k", "a || b"),
    (
        "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex UNION ALL SELECT 'all' AS sex, COUNT(*) AS n FROM visits",
        "ROLLUP",
    ),
]
