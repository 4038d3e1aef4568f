-- The share of revenue that some items have.
SELECT 100.00 * sum(CASE WHEN i_data LIKE 'P%' THEN ol_amount ELSE 0 END) / (1 + sum(ol_amount)) AS promo_revenue
FROM order_line, item
WHERE ol_i_id = i_id
  AND ol_delivery_d >= '2025-09-01'
  AND ol_delivery_d < '2027-01-01';
