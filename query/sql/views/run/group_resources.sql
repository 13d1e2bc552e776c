-- What each group's units took of each resource, and how evenly they went.
--
-- one row per attempt of a group that ran:
--   group_id       the group
--   scope_id       the scope it works for
--   name           what the framework's own UI shows
--   what           what its units read and write
--   status         succeeded, failed or unfinished
--   units          units that ran, attempts counted each
--   launch_ms      launch of its first unit
--   end_ms         end of its last unit
--   length_ms      from the one to the other
--   unit_ms        time of its units, summed: the columns by resource and other_ms add up to it
--   <resource>_ms  of that, on <resource>
--   other_ms       of that, on none of the resources, or unknown
--   most           the resource with the most of it, or other
--   median_ms      length of the unit in the middle
--   longest_ms     length of the longest
--   skew           the longest in medians; NULL for one unit
--   gc_ms          garbage collection of processes while units ran, summed over units
--   input_bytes    read from storage
--   remote_bytes   read from other workers
--   local_bytes    read from units of the same worker
--   handed_bytes   written for other units
--   output_bytes   written to storage
--   spill_disk_bytes  size on disk of what was spilled
WITH of_units AS (
    SELECT
        group_id, count(*) AS units, min(launch_ms) AS launch_ms, max(finish_ms) AS end_ms,
        max(finish_ms) - min(launch_ms) AS length_ms, sum(finish_ms - launch_ms) AS unit_ms,
        {sums_ms},
        median(finish_ms - launch_ms) AS median_ms, max(finish_ms - launch_ms) AS longest_ms,
        CASE WHEN count(*) > 1 THEN max(finish_ms - launch_ms) / nullif(median(finish_ms - launch_ms), 0) END AS skew,
        sum(gc_ms) AS gc_ms, sum(input_bytes)::BIGINT AS input_bytes, sum(remote_bytes)::BIGINT AS remote_bytes,
        sum(local_bytes)::BIGINT AS local_bytes, sum(handed_bytes)::BIGINT AS handed_bytes,
        sum(output_bytes)::BIGINT AS output_bytes, sum(spill_disk_bytes)::BIGINT AS spill_disk_bytes
    FROM units
    GROUP BY group_id
)
SELECT g.group_id, g.scope_id, g.name, g.what, g.status, u.* EXCLUDE (group_id)
FROM groups AS g JOIN (SELECT *, {most_ms} AS most FROM of_units) AS u USING (group_id)
