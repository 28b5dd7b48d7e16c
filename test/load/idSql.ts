const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

/**
 * SQL for an id as the product makes them: `prefix`, and a UUIDv7 in base32 that holds the milliseconds of `millis` (SQL, bigint). Its random bits are the first 15
 * hexadecimal digits of `digest` (SQL, text), so the same digest gives the same id. Hexadecimal digits are base32 digits too; `e` and `8` carry the version and the
 * variant.
 */
export const idSql = (prefix: string, millis: string, digest: string): string => {
  const time = Array.from({ length: 10 }, (_, index) => `substr('${alphabet}', ((${millis} >> ${45 - index * 5}) & 31)::int + 1, 1)`).join(" || ")
  return `'${prefix}_' || ${time} || 'e' || overlay(left(${digest}, 15) placing '8' from 3 for 1)`
}
