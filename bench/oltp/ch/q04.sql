-- Orders of a time of which a line was delivered at or after its entry, by their number of lines.
SELECT o_ol_cnt, count(*) AS order_count
FROM orders
WHERE o_entry_d >= '2025-09-15' AND o_entry_d < '2025-12-01'
  AND EXISTS (SELECT *
              FROM order_line
              WHERE o_id = ol_o_id AND o_w_id = ol_w_id AND o_d_id = ol_d_id
                AND ol_delivery_d >= o_entry_d)
GROUP BY o_ol_cnt
ORDER BY o_ol_cnt;
