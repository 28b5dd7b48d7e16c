const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

/** SQL for the last `count` base32 digits of a bigint (SQL). */
export const digitsSql = (value: string, count: number): string =>
  Array.from({ length: count }, (_, index) => `substr('${alphabet}', ((${value} >> ${(count - 1 - index) * 5}) & 31)::int + 1, 1)`).join(" || ")

/**
 * SQL for the part of an ID after the time. Its random bits are the first 15 hexadecimal digits of `digest` (SQL, text). Hexadecimal digits are
 * also base32 digits. `e` and `8` contain the version and the variant.
 */
export const randomSql = (digest: string): string => `'e' || overlay(left(${digest}, 15) placing '8' from 3 for 1)`

/**
 * SQL for an ID of the product: `prefix` and a UUIDv7 in base32 with the time `millis` (SQL, bigint). The same digest gives the same ID.
 */
export const idSql = (prefix: string, millis: string, digest: string): string => `'${prefix}_' || ${digitsSql(millis, 10)} || ${randomSql(digest)}`
