# shellcheck shell=bash
# TPC-H tables from tpchgen-cli, which lives in a Python environment below
# build/.  Needs common.sh; loading needs a cluster (cluster.sh).

TPCH_VENV=$FMSORT_ROOT/build/venv
TPCH_WANTED=$FMSORT_ROOT/script/requirements.txt

# Made once; again when the wanted versions change.
tpch_setup() {
    cmp -s "$TPCH_WANTED" "$TPCH_VENV/wanted" && return
    [[ -n $FMSORT_LOG ]] || log_to "$FMSORT_ROOT/build/log/setup.log"
    step "  installing tpchgen-cli, the generator of TPC-H's data" tpch_install
}

tpch_install() {
    python -m venv --clear "$TPCH_VENV" &&
        "$TPCH_VENV/bin/pip" install --disable-pip-version-check \
            --requirement "$TPCH_WANTED" &&
        cp "$TPCH_WANTED" "$TPCH_VENV/wanted"
}

# tpch_load TABLE SCALE_FACTOR: creates, fills and analyses one table.  One
# thread, as several may interleave and the order of arrival would vary.  The
# generator ends each line with a delimiter, which COPY takes for one more
# column: sed cuts it off.
tpch_load() {
    local table=$1 scale=$2

    psql -q -v ON_ERROR_STOP=1 -c "$(tpch_definition "$table")" &&
        "$TPCH_VENV/bin/tpchgen-cli" tbl --scale-factor "$scale" \
            --tables "$table" --num-threads 1 --stdout --quiet |
        sed 's/|$//' |
            psql -q -v ON_ERROR_STOP=1 \
                -c "COPY $table FROM STDIN (DELIMITER '|')" \
                -c "VACUUM (ANALYZE, FREEZE) $table"
}

tpch_definition() {
    case $1 in
    customer)
        cat <<EOF
CREATE TABLE customer (
  c_custkey int NOT NULL,
  c_name varchar(25) NOT NULL,
  c_address varchar(40) NOT NULL,
  c_nationkey int NOT NULL,
  c_phone char(15) NOT NULL,
  c_acctbal numeric(15, 2) NOT NULL,
  c_mktsegment char(10) NOT NULL,
  c_comment varchar(117) NOT NULL)
EOF
        ;;
    orders)
        cat <<EOF
CREATE TABLE orders (
  o_orderkey bigint NOT NULL,
  o_custkey int NOT NULL,
  o_orderstatus char(1) NOT NULL,
  o_totalprice numeric(15, 2) NOT NULL,
  o_orderdate date NOT NULL,
  o_orderpriority char(15) NOT NULL,
  o_clerk char(15) NOT NULL,
  o_shippriority int NOT NULL,
  o_comment varchar(79) NOT NULL)
EOF
        ;;
    lineitem)
        cat <<EOF
CREATE TABLE lineitem (
  l_orderkey bigint NOT NULL,
  l_partkey int NOT NULL,
  l_suppkey int NOT NULL,
  l_linenumber int NOT NULL,
  l_quantity numeric(15, 2) NOT NULL,
  l_extendedprice numeric(15, 2) NOT NULL,
  l_discount numeric(15, 2) NOT NULL,
  l_tax numeric(15, 2) NOT NULL,
  l_returnflag char(1) NOT NULL,
  l_linestatus char(1) NOT NULL,
  l_shipdate date NOT NULL,
  l_commitdate date NOT NULL,
  l_receiptdate date NOT NULL,
  l_shipinstruct char(25) NOT NULL,
  l_shipmode char(10) NOT NULL,
  l_comment varchar(44) NOT NULL)
EOF
        ;;
    part)
        cat <<EOF
CREATE TABLE part (
  p_partkey int NOT NULL,
  p_name varchar(55) NOT NULL,
  p_mfgr char(25) NOT NULL,
  p_brand char(10) NOT NULL,
  p_type varchar(25) NOT NULL,
  p_size int NOT NULL,
  p_container char(10) NOT NULL,
  p_retailprice numeric(15, 2) NOT NULL,
  p_comment varchar(23) NOT NULL)
EOF
        ;;
    supplier)
        cat <<EOF
CREATE TABLE supplier (
  s_suppkey int NOT NULL,
  s_name char(25) NOT NULL,
  s_address varchar(40) NOT NULL,
  s_nationkey int NOT NULL,
  s_phone char(15) NOT NULL,
  s_acctbal numeric(15, 2) NOT NULL,
  s_comment varchar(101) NOT NULL)
EOF
        ;;
    partsupp)
        cat <<EOF
CREATE TABLE partsupp (
  ps_partkey int NOT NULL,
  ps_suppkey int NOT NULL,
  ps_availqty int NOT NULL,
  ps_supplycost numeric(15, 2) NOT NULL,
  ps_comment varchar(199) NOT NULL)
EOF
        ;;
    nation)
        cat <<EOF
CREATE TABLE nation (
  n_nationkey int NOT NULL,
  n_name char(25) NOT NULL,
  n_regionkey int NOT NULL,
  n_comment varchar(152))
EOF
        ;;
    region)
        cat <<EOF
CREATE TABLE region (
  r_regionkey int NOT NULL,
  r_name char(25) NOT NULL,
  r_comment varchar(152))
EOF
        ;;
    esac
}
