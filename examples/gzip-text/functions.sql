/* Functions in which tasks were sampled: the innermost function of Hadoop or Spark on each stack, including its calls of
   the JDK.  Shares are of the sampled time, in per cent. */
SELECT
    regexp_replace([frame FOR frame IN frames IF frame LIKE 'org.apache.%'][1], ':\d+$', '') AS function,
    round(100 * sum(weight_ms) / sum(sum(weight_ms)) OVER (), 1) AS percent
FROM samples JOIN stacks USING (stack_id)
WHERE task_id IS NOT NULL
GROUP BY function
ORDER BY percent DESC
LIMIT 4
