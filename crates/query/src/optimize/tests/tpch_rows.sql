INSERT INTO region SELECT i, (array['AFRICA','AMERICA','ASIA','EUROPE','MIDDLE EAST'])[i + 1], '' FROM generate_series(0, 4) i;
INSERT INTO nation SELECT i, (array['FRANCE','GERMANY','BRAZIL','CANADA','SAUDI ARABIA','INDIA','CHINA','PERU'])[i + 1],
    (array[3,3,1,1,4,2,2,1])[i + 1], '' FROM generate_series(0, 7) i;
INSERT INTO supplier SELECT i, 'Supplier ' || i, 'there', i % 8, (array['13','31','23','29'])[1 + i % 4] || '-555', i * 100 - 300,
    CASE WHEN i % 5 = 0 THEN 'a Customer of Complaints' ELSE 'none' END FROM generate_series(1, 12) i;
INSERT INTO customer SELECT i, 'Customer ' || i, 'here', i % 8, (array['13','31','23','99'])[1 + i % 4] || '-555', i * 50 - 100,
    (array['BUILDING','MACHINERY'])[1 + i % 2], 'none' FROM generate_series(1, 20) i;
INSERT INTO part SELECT i, (array['forest green','lime','forest red','dim green'])[1 + i % 4], 'Manufacturer ' || i % 2,
    (array['Brand#12','Brand#23','Brand#34','Brand#45'])[1 + i % 4],
    (array['ECONOMY ANODIZED STEEL','PROMO BRASS','MEDIUM POLISHED TIN','SMALL BRASS'])[1 + i / 2 % 4],
    (array[15,49,14,5,1])[1 + i % 5], (array['SM CASE','MED BOX','LG CASE','MED BAG'])[1 + i % 4], i, 'none'
    FROM generate_series(1, 20) i;
INSERT INTO partsupp SELECT p, 1 + (p * 3 + j * 5) % 12, p * 70 % 500, p + j, 'none'
    FROM generate_series(1, 20) p, generate_series(0, 1) j;
INSERT INTO orders SELECT i, 1 + i * 7 % 15, (array['F','O','F'])[1 + i % 3], i * 10, date '1993-07-01' + (i * 37 % 1700),
    (array['1-URGENT','2-HIGH','5-LOW'])[1 + i % 3], 'clerk', 0,
    CASE WHEN i % 6 = 0 THEN 'some special kind of requests' ELSE 'none' END FROM generate_series(1, 60) i;
INSERT INTO lineitem SELECT 1 + i / 3, 1 + i % 20, 1 + ((1 + i % 20) * 3 + i / 7 % 2 * 5) % 12, 1 + i % 3, 1 + i * 13 % 50,
    1000 + i * 17 % 400, (array[0.05,0.06,0.1])[1 + i % 3], 0.02, (array['R','A','N'])[1 + i % 3], (array['F','O'])[1 + i % 2],
    date '1993-07-01' + (i * 29 % 1800), date '1993-07-01' + (i * 29 % 1800) + i % 30 - 10,
    date '1993-07-01' + (i * 29 % 1800) + i % 20, 'DELIVER IN PERSON', (array['AIR','MAIL','SHIP'])[1 + i % 3], 'none'
    FROM generate_series(0, 170) i;
