//! TPC-C's nine tables (clause 1.3), and the three that CH-benCHmark adds for its queries.
//!
//! Fixed text is char(n), variable text varchar(n), signed numbers numeric. Keys are primary keys; the two indexes are
//! those that by-name look-ups and Order-Status need, made once the rows are there. No foreign keys: as in most
//! published kits, the consistency conditions check them.

pub const DISTRICTS: i64 = 10;
pub const CUSTOMERS: i64 = 3000;
pub const ORDERS: i64 = 3000;
/// Of these, the last 900 are not delivered.
pub const DELIVERED: i64 = 2100;
pub const ITEMS: i64 = 100_000;
pub const SUPPLIERS: i64 = 10_000;

pub const TABLES: &[(&str, &str)] = &[
    (
        "warehouse",
        "w_id int PRIMARY KEY, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20), \
         w_city varchar(20), w_state char(2), w_zip char(9), w_tax numeric(4,4), w_ytd numeric(12,2)",
    ),
    (
        "district",
        "d_id int, d_w_id int, d_name varchar(10), d_street_1 varchar(20), d_street_2 varchar(20), \
         d_city varchar(20), d_state char(2), d_zip char(9), d_tax numeric(4,4), d_ytd numeric(12,2), \
         d_next_o_id int, PRIMARY KEY (d_w_id, d_id)",
    ),
    (
        "customer",
        "c_id int, c_d_id int, c_w_id int, c_first varchar(16), c_middle char(2), c_last varchar(16), \
         c_street_1 varchar(20), c_street_2 varchar(20), c_city varchar(20), c_state char(2), c_zip char(9), \
         c_phone char(16), c_since timestamp, c_credit char(2), c_credit_lim numeric(12,2), \
         c_discount numeric(4,4), c_balance numeric(12,2), c_ytd_payment numeric(12,2), c_payment_cnt int, \
         c_delivery_cnt int, c_data varchar(500), PRIMARY KEY (c_w_id, c_d_id, c_id)",
    ),
    (
        "history",
        "h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date timestamp, \
         h_amount numeric(6,2), h_data varchar(24)",
    ),
    ("new_order", "no_o_id int, no_d_id int, no_w_id int, PRIMARY KEY (no_w_id, no_d_id, no_o_id)"),
    (
        "orders",
        "o_id int, o_d_id int, o_w_id int, o_c_id int, o_entry_d timestamp, o_carrier_id int, o_ol_cnt int, \
         o_all_local int, PRIMARY KEY (o_w_id, o_d_id, o_id)",
    ),
    (
        "order_line",
        "ol_o_id int, ol_d_id int, ol_w_id int, ol_number int, ol_i_id int, ol_supply_w_id int, \
         ol_delivery_d timestamp, ol_quantity int, ol_amount numeric(6,2), ol_dist_info char(24), \
         PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
    ),
    ("item", "i_id int PRIMARY KEY, i_im_id int, i_name varchar(24), i_price numeric(5,2), i_data varchar(50)"),
    (
        "stock",
        "s_i_id int, s_w_id int, s_quantity int, s_dist_01 char(24), s_dist_02 char(24), s_dist_03 char(24), \
         s_dist_04 char(24), s_dist_05 char(24), s_dist_06 char(24), s_dist_07 char(24), s_dist_08 char(24), \
         s_dist_09 char(24), s_dist_10 char(24), s_ytd int, s_order_cnt int, s_remote_cnt int, s_data varchar(50), \
         PRIMARY KEY (s_w_id, s_i_id)",
    ),
    ("region", "r_regionkey int PRIMARY KEY, r_name varchar(55), r_comment varchar(152)"),
    ("nation", "n_nationkey int PRIMARY KEY, n_name varchar(25), n_regionkey int, n_comment varchar(152)"),
    (
        "supplier",
        "su_suppkey int PRIMARY KEY, su_name varchar(25), su_address varchar(40), su_nationkey int, \
         su_phone char(15), su_acctbal numeric(12,2), su_comment varchar(101)",
    ),
];

pub const INDEXES: &[(&str, &str)] = &[
    ("customer_by_name", "customer (c_w_id, c_d_id, c_last, c_first)"),
    ("orders_by_customer", "orders (o_w_id, o_d_id, o_c_id, o_id)"),
];

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// Clause 4.3.2.3: one syllable for each of three digits.
pub fn last_name(number: i64) -> String {
    [100, 10, 1].map(|power| SYLLABLES[(number / power % 10) as usize]).concat()
}

/// Constants of NURand (clause 2.1.6.1): those of last names differ by 66 between load and run.
pub const LAST_NAME_LOADED: i64 = 157;
pub const LAST_NAME_RUN: i64 = 223;
pub const CUSTOMER: i64 = 259;
pub const ITEM: i64 = 7911;

pub const REGIONS: [&str; 5] = ["Africa", "America", "Asia", "Europe", "Middle East"];

/// With the number of their region. Keys are the codes of digits and letters, with which states of customers begin.
pub const NATIONS: [(&str, usize); 62] = [
    ("Algeria", 0),
    ("Argentina", 1),
    ("Australia", 2),
    ("Austria", 3),
    ("Bahrain", 4),
    ("Belgium", 3),
    ("Brazil", 1),
    ("Bulgaria", 3),
    ("Cambodia", 2),
    ("Cameroon", 0),
    ("Canada", 1),
    ("Chile", 1),
    ("China", 2),
    ("Colombia", 1),
    ("Croatia", 3),
    ("Cuba", 1),
    ("Denmark", 3),
    ("Ecuador", 1),
    ("Egypt", 4),
    ("Estonia", 3),
    ("Ethiopia", 0),
    ("Finland", 3),
    ("France", 3),
    ("Germany", 3),
    ("Ghana", 0),
    ("Greece", 3),
    ("Hungary", 3),
    ("Iceland", 3),
    ("India", 2),
    ("Indonesia", 2),
    ("Iran", 4),
    ("Iraq", 4),
    ("Ireland", 3),
    ("Israel", 4),
    ("Italy", 3),
    ("Japan", 2),
    ("Jordan", 4),
    ("Kenya", 0),
    ("Kuwait", 4),
    ("Lebanon", 4),
    ("Malaysia", 2),
    ("Mexico", 1),
    ("Morocco", 0),
    ("Mozambique", 0),
    ("Netherlands", 3),
    ("Nigeria", 0),
    ("Norway", 3),
    ("Oman", 4),
    ("Peru", 1),
    ("Poland", 3),
    ("Portugal", 3),
    ("Qatar", 4),
    ("Romania", 3),
    ("Saudi Arabia", 4),
    ("Senegal", 0),
    ("Spain", 3),
    ("Sweden", 3),
    ("Thailand", 2),
    ("Tunisia", 0),
    ("United Kingdom", 3),
    ("United States", 1),
    ("Vietnam", 2),
];
pub const NATION_KEYS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
