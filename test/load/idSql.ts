const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

/** SQL for the last `count` base32 digits of a bigint (SQL). */
export const digitsSql = (value: string, count: number): string =>
  Array.from({ length: count }, (_, index) => `substr('${alphabet}', ((${value} >> ${(count - 1 - index) * 5}) & 31)::int + 1, 1)`).join(" || ")

/**
 * SQL for the rest of an id, behind the time: its random bits are the first 15 hexadecimal digits of `digest` (SQL, text). Hexadecimal digits are base32 digits too; `e` and `8` carry
 * the version and the variant.
 */
export const randomSql = (digest: string): string => `'e' || overlay(left(${digest}, 15) placing '8' from 3 for 1)`

/**
 * SQL for an id as the product makes them: `prefix`, and a UUIDv7 in base32 that holds the milliseconds of `millis` (SQL, bigint). The same digest gives the same id.
 */
export const idSql = (prefix: string, millis: string, digest: string): string => `'${prefix}_' || ${digitsSql(millis, 10)} || ${randomSql(digest)}`
