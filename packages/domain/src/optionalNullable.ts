import { Schema } from "effect"

/** A field that may be absent or null. */
export const optionalNullable = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
