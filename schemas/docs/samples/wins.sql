-- The winners of most races, with the seasons of their first and their last win.
SELECT name, count(*) AS wins, min(season) AS first, max(season) AS last
FROM results WHERE position = 1
GROUP BY driver_id, name ORDER BY wins DESC, name LIMIT 5;
