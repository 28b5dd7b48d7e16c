import { userInfo } from "node:os"
import { Administrator } from "@seatrial/store"
import { Config, Effect, Layer, Option, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { PlainText } from "../plainText.ts"

const Name = PlainText.check(Schema.isMaxLength(58, { message: "Expected at most 58 characters" }))
const SessionUser = Schema.Tuple([Schema.Struct({ name: Schema.String })])

/** The account at the terminal; under sudo the one that called it. A container's account often has no name. */
const accountName = (): string | null => {
  if (process.env.SUDO_USER !== undefined && process.env.SUDO_USER !== "") return process.env.SUDO_USER
  try {
    return userInfo().username
  } catch {
    return null
  }
}

/** Who administers: `SEATRIAL_ADMIN`, else the account at the terminal, else the database's user. Audit events record it. */
export const layerAdministrator = Layer.effect(
  Administrator,
  Effect.gen(function* () {
    const named = yield* Config.schema(Name, "SEATRIAL_ADMIN").pipe(Config.option)
    const known = Option.getOrElse(named, accountName)
    if (known !== null) return known.slice(0, 58)
    const sql = yield* SqlClient.SqlClient
    const rows = yield* Effect.orDie(sql`SELECT session_user AS name`)
    return Schema.decodeUnknownSync(SessionUser)(rows)[0].name.slice(0, 58)
  })
)
