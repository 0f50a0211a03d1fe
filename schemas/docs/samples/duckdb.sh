# All tables of all seasons in f1.duckdb, from the folders that seasons.sh has filled. columns.csv names the type of a column,
# because DuckDB takes a column without a value for text. One transaction: a reader sees the old tables or the new ones.
{
  echo "BEGIN;"
  for file in gridcast-*/*.csv; do basename "$file" .csv; done | sort -u | while read -r table; do
    types=$(cat gridcast-*/columns.csv | sort -u | awk -F, -v file="$table.csv" '
      BEGIN { sql["integer"] = "BIGINT"; sql["number"] = "DOUBLE"; sql["instant"] = "TIMESTAMPTZ"; sql["true or false"] = "BOOLEAN" }
      $1 == file { printf ", \047%s\047: \047%s\047", $2, $3 in sql ? sql[$3] : $2 == "date" ? "DATE" : "VARCHAR" }')
    cat <<SQL
CREATE OR REPLACE TABLE "$table" AS
  SELECT CAST(regexp_extract(filename, 'gridcast-([0-9]{4})', 1) AS INT) AS season, * EXCLUDE (filename)
  FROM read_csv('gridcast-*/$table.csv', header = true, delim = ',', quote = '"', escape = '"', union_by_name = true, filename = true${types:+, types = {${types#, }\}});
SQL
  done
  echo "COMMIT;"
} | duckdb f1.duckdb
duckdb -csv f1.duckdb < wins.sql
