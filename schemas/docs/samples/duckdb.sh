# All tables of all seasons in f1.duckdb, from the folders that seasons.sh has filled.
# One transaction: a reader of the file sees the old tables or the new ones.
{
  echo "BEGIN;"
  for file in gridcast-*/*.csv; do basename "$file" .csv; done | sort -u | while read -r table; do
    cat <<SQL
CREATE OR REPLACE TABLE "$table" AS
  SELECT CAST(regexp_extract(filename, 'gridcast-([0-9]{4})', 1) AS INT) AS season, * EXCLUDE (filename)
  FROM read_csv('gridcast-*/$table.csv', union_by_name = true, filename = true, sample_size = -1);
SQL
  done
  echo "COMMIT;"
} | duckdb f1.duckdb
duckdb -csv f1.duckdb < wins.sql
