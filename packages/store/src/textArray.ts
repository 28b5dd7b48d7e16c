import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"

/** A parameter of the type `text[]`, also if it is empty. */
export const textArray = (values: ReadonlyArray<string>) => Result.getOrThrow(PgTypes.array(values, PgTypes.OID.text))
