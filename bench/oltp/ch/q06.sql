-- Revenue of lines of a time and of some quantities.
SELECT sum(ol_amount) AS revenue
FROM order_line
WHERE ol_delivery_d >= '2025-09-01'
  AND ol_delivery_d < '2027-01-01'
  AND ol_quantity BETWEEN 1 AND 100000;
