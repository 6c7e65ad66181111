-- Databases with an encoding other than UTF-8. Text that can be converted to UTF-8 is accepted, and hashed in UTF-8. Bytes that
-- cannot be converted are refused with SW005 in every argument.

\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
SELECT current_database() AS back \gset

CREATE DATABASE regress_sql_ascii ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C';
CREATE DATABASE regress_win1252 ENCODING 'WIN1252' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C';
CREATE DATABASE regress_euc_jp ENCODING 'EUC_JP' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C';

-- good: e with an acute accent, or a Japanese letter; bad: a byte that is no character, or a character that is not in Unicode
\c regress_sql_ascii
\set good 'SELECT convert_from(\'\\xc3a9\', \'SQL_ASCII\')'
\set bad 'SELECT convert_from(\'\\x6281\', \'SQL_ASCII\')'
\i test/encoding.sql

\c regress_win1252
\set good 'SELECT convert_from(\'\\xe9\', \'WIN1252\')'
\set bad 'SELECT convert_from(\'\\x6281\', \'WIN1252\')'
\i test/encoding.sql

\c regress_euc_jp
\set good 'SELECT convert_from(\'\\xa4a2\', \'EUC_JP\')'
\set bad 'SELECT convert_from(\'\\x62f4fe\', \'EUC_JP\')'
\i test/encoding.sql

\c :back
DROP DATABASE regress_sql_ascii;
DROP DATABASE regress_win1252;
DROP DATABASE regress_euc_jp;
