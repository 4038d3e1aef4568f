"""A star: sales with four dimensions, and 13 queries in four flights, from one dimension to all of them.

The shapes are those of the Star Schema Benchmark (O'Neil et al., 2009); tables, distributions and texts are our own. Sales
come in no order of any dimension. Prices are whole cents in some columns and decimals in others, as they are in the field.
"""
from suites.suite import Column, Suite, Table, scattered

FIRST_YEAR, YEARS = 2018, 7
REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "OCEANIA"]
CUSTOMERS, STORES, PRODUCTS, DAYS = 100_000, 4_000, 80_000, 2557


def place(letter, salt):
    """Region, country (5 of each) and city (10 of each) of a row."""
    return [
        Column(f"{letter}_region", "text", f"{REGIONS}[pick(i, {salt}, 5) + 1]"),
        Column(f"{letter}_country", "text", f"left({letter}_region, 3) || ' ' || pick(i, {salt + 1}, 5)"),
        Column(f"{letter}_city", "text", f"{letter}_country || '-' || pick(i, {salt + 2}, 10)"),
    ]


DAY = Table("day", "d_key", [
    Column("d_key", "int", f"strftime(DATE '{FIRST_YEAR}-01-01' + (i - 1)::INT, '%Y%m%d')"),
    Column("d_date", "date", f"DATE '{FIRST_YEAR}-01-01' + (i - 1)::INT"),
    Column("d_year", "int", "year(d_date)"),
    Column("d_month", "int", "month(d_date)"),
    Column("d_year_month", "text", "strftime(d_date, '%b%Y')"),
    Column("d_week", "int", "(dayofyear(d_date) - 1) // 7 + 1"),
    Column("d_weekday", "text", "dayname(d_date)"),
    Column("d_holiday", "boolean", "pick(i, 1, 30) = 0"),
], rows=DAYS)

CUSTOMER = Table("customer", "c_key", [
    Column("c_key", "int", "i"),
    Column("c_name", "text", "'Customer ' || i"),
    *place("c", 10),
    Column("c_segment", "text", "['MACHINES', 'FURNITURE', 'CARS', 'HOUSE', 'BUILDING'][pick(i, 13, 5) + 1]"),
], rows=CUSTOMERS)

STORE = Table("store", "s_key", [
    Column("s_key", "int", "i"),
    Column("s_name", "text", "'Store ' || i"),
    *place("s", 20),
], rows=STORES)

PRODUCT = Table("product", "p_key", [
    Column("p_key", "int", "i"),
    Column("p_name", "text", "word(pick(i, 30, 8000)) || ' ' || word(pick(i, 31, 8000))"),
    Column("p_maker", "text", "'MAKER#' || (pick(i, 32, 5) + 1)"),
    Column("p_category", "text", "p_maker || (pick(i, 33, 5) + 1)"),
    Column("p_brand", "text", "p_category || lpad((pick(i, 34, 40) + 1)::TEXT, 2, '0')"),
    Column("p_color", "text", "word(pick(i, 35, 92))"),
    Column("p_size", "int", "pick(i, 36, 50) + 1"),
], rows=PRODUCTS)

SALE = Table("sale", "l_order, l_line", [
    Column("l_order", "bigint", "(i - 1) // 4 + 1"),
    Column("l_line", "int", "(i - 1) % 4 + 1"),
    Column("l_customer", "int", f"pick(l_order, 40, {CUSTOMERS}) + 1"),
    Column("l_product", "int", f"CASE WHEN pick(i, 41, 4) = 0 THEN {scattered(f'zipf(i, 42, {PRODUCTS})', PRODUCTS)} ELSE pick(i, 42, {PRODUCTS}) + 1 END"),
    Column("l_store", "int", f"pick(i, 43, {STORES}) + 1"),
    Column("l_day", "int", f"strftime(DATE '{FIRST_YEAR}-01-01' + pick(l_order, 44, {DAYS})::INT, '%Y%m%d')"),
    Column("l_priority", "text", "['1-URGENT', '2-HIGH', '3-MEDIUM', '4-LOW'][pick(l_order, 45, 4) + 1]"),
    Column("l_quantity", "int", "pick(i, 46, 50) + 1"),
    Column("l_price", "numeric(12,2)", "(pick(l_product, 47, 100000) + 900) * l_quantity / 100.0"),
    Column("l_discount", "int", "pick(i, 48, 11)"),
    Column("l_revenue", "bigint", "(l_price * (100 - l_discount))::BIGINT"),
    Column("l_cost", "bigint", "(l_price * 60)::BIGINT"),
    Column("l_mode", "text", "['AIR', 'RAIL', 'SHIP', 'TRUCK', 'MAIL', 'FOB', 'REG AIR'][pick(i, 49, 7) + 1]"),
])


def year(r):
    return FIRST_YEAR + r.randrange(YEARS)


def region(r):
    return r.choice(REGIONS)


def country(r, of=None):
    return f"{(of or region(r))[:3]} {r.randrange(5)}"


def cities(r):
    of = country(r)
    return ", ".join(f"'{of}-{number}'" for number in r.sample(range(10), 2))


def category(r):
    return f"MAKER#{r.randint(1, 5)}{r.randint(1, 5)}"


def flight_1(r, days, discount, quantity):
    low = r.randint(1, 8)
    return f"""SELECT sum(l_price * l_discount) AS revenue, count(*) FROM sale, day
        WHERE l_day = d_key AND {days} AND l_discount BETWEEN {low} AND {low + discount} AND l_quantity {quantity}"""


def flight_2(r, products):
    return f"""SELECT sum(l_revenue), d_year, p_brand FROM sale, day, product, store
        WHERE l_day = d_key AND l_product = p_key AND l_store = s_key AND {products} AND s_region = '{region(r)}'
        GROUP BY d_year, p_brand ORDER BY d_year, p_brand"""


def flight_3(places, shown, days):
    return f"""SELECT c_{shown}, s_{shown}, d_year, sum(l_revenue) AS revenue FROM customer, sale, store, day
        WHERE l_customer = c_key AND l_store = s_key AND l_day = d_key AND {places} AND {days}
        GROUP BY c_{shown}, s_{shown}, d_year ORDER BY d_year, revenue DESC, c_{shown}, s_{shown}"""


def flight_4(groups, conditions):
    return f"""SELECT {groups}, sum(l_revenue - l_cost) AS profit FROM day, customer, store, product, sale
        WHERE l_customer = c_key AND l_store = s_key AND l_product = p_key AND l_day = d_key AND {conditions}
        GROUP BY {groups} ORDER BY {groups}"""


def brands(r):
    of, first = category(r), r.randint(1, 33)
    return f"p_brand BETWEEN '{of}{first:02}' AND '{of}{first + 7:02}'"


def years(r, count):
    first = FIRST_YEAR + r.randrange(YEARS - count + 1)
    return f"d_year BETWEEN {first} AND {first + count - 1}"


def both(column, value):
    return f"c_{column} = '{value}' AND s_{column} = '{value}'"


def month(r):
    return f"d_year_month = '{r.choice(['Jan', 'Feb', 'Mar', 'Jul', 'Oct', 'Dec'])}{year(r)}'"


def both_in(listed):
    return f"c_city IN ({listed}) AND s_city IN ({listed})"


def maker_pair(r):
    return "p_maker IN ({})".format(", ".join(f"'MAKER#{number}'" for number in r.sample(range(1, 6), 2)))


def two_years(r):
    first = FIRST_YEAR + r.randrange(YEARS - 1)
    return f"d_year IN ({first}, {first + 1})"


SUITE = Suite("star", (4_000_000, 400_000), [DAY, CUSTOMER, STORE, PRODUCT, SALE], {
    "1.1": lambda r: flight_1(r, f"d_year = {year(r)}", 2, "< 25"),
    "1.2": lambda r: flight_1(r, month(r), 2, "BETWEEN 26 AND 35"),
    "1.3": lambda r: flight_1(r, f"d_week = {r.randint(1, 52)} AND d_year = {year(r)}", 2, "BETWEEN 26 AND 35"),
    "2.1": lambda r: flight_2(r, f"p_category = '{category(r)}'"),
    "2.2": lambda r: flight_2(r, brands(r)),
    "2.3": lambda r: flight_2(r, f"p_brand = '{category(r)}{r.randint(1, 40):02}'"),
    "3.1": lambda r: flight_3(both("region", region(r)), "country", years(r, 6)),
    "3.2": lambda r: flight_3(both("country", country(r)), "city", years(r, 6)),
    "3.3": lambda r: flight_3(both_in(cities(r)), "city", years(r, 6)),
    "3.4": lambda r: flight_3(both_in(cities(r)), "city", month(r)),
    "4.1": lambda r: flight_4("d_year, c_country", f"{both('region', region(r))} AND {maker_pair(r)}"),
    "4.2": lambda r: flight_4("d_year, s_country, p_category", f"{both('region', region(r))} AND {maker_pair(r)} AND {two_years(r)}"),
    "4.3": lambda r: flight_4("d_year, s_city, p_brand", f"s_country = '{country(r)}' AND p_category = '{category(r)}' AND {two_years(r)}"),
})
