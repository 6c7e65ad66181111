-- The lines of one comparison.
SELECT format('%-6s  %7s  %7s  %-15s  %8s  %5s  %13s  %8s  %8s', :'sync', :'clients', :'size', way,
              round(percentile_cont(0.5) WITHIN GROUP (ORDER BY per_s)),
              to_char(percentile_cont(0.5) WITHIN GROUP (ORDER BY ratio), 'FM90.00'),
              to_char(percentile_cont(0.25) WITHIN GROUP (ORDER BY ratio), 'FM90.00') || ' - ' ||
              to_char(percentile_cont(0.75) WITHIN GROUP (ORDER BY ratio), 'FM90.00'),
              round(percentile_cont(0.5) WITHIN GROUP (ORDER BY cpu)),
              round(percentile_cont(0.5) WITHIN GROUP (ORDER BY wal_per_step)))
FROM bench.comparison
WHERE size = :size AND clients = :clients AND sync = :'sync'
GROUP BY way
ORDER BY min(CASE way WHEN 'handwritten' THEN 1 WHEN 'handwritten_one' THEN 2 WHEN 'two_calls' THEN 3 ELSE 4 END);
