import { KeyId, scopes } from "@seatrial/domain"
import { ApiKeys } from "@seatrial/store"
import { Clock, Effect, Option, Redacted, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { printRecord, printRows } from "../print.ts"
import { emailFlag as email, jsonFlag as json, orgFlag as org, organization, user } from "./organization.ts"

const scopeList = Flag.Literals("scope", scopes).pipe(
  Flag.withDescription("A scope of the key; may be given several times (default: all)"),
  Flag.atLeast(0),
  Flag.map((given) => (given.length === 0 ? scopes : given))
)

export const keysCommand = Command.make("keys").pipe(
  Command.withDescription("API keys."),
  Command.withSubcommands([
    Command.make(
      "create",
      {
        org,
        email,
        name: Flag.String("name").pipe(Flag.withDescription("What the key is for"), Flag.withDefault("key")),
        scopes: scopeList,
        days: Flag.Int("expires-in-days").pipe(
          Flag.withDescription("Days until it expires (default: never)"),
          Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 36_500 }))),
          Flag.optional
        ),
        json
      },
      Effect.fn(function* ({ days, email, json, name, org, scopes }) {
        const apiKeys = yield* ApiKeys
        const owner = yield* organization(org)
        const { id: userId } = yield* user(owner, email)
        const now = yield* Clock.currentTimeMillis
        const expiry = Option.isSome(days) ? { expiresAt: now + days.value * 86_400_000 } : {}
        const { key, secret } = yield* apiKeys.create({ orgId: owner.id, userId, name, scopes, ...expiry })
        yield* printRecord(json, { id: key.id, name: key.name, scopes: key.scopes.join(","), expires_at: key.expiresAt, secret: Redacted.value(secret) })
      })
    ).pipe(Command.withDescription("Makes an API key and shows it this once.")),
    Command.make(
      "list",
      { org, json },
      Effect.fn(function* ({ json, org }) {
        const apiKeys = yield* ApiKeys
        const { id } = yield* organization(org)
        yield* printRows(
          json,
          (yield* apiKeys.list(id)).map(({ orgId: _, ...row }) => row)
        )
      })
    ).pipe(Command.withDescription("Lists an organization's keys.")),
    Command.make(
      "revoke",
      { org, id: Argument.String("id").pipe(Argument.withDescription("The key's id, key_..."), Argument.withSchema(KeyId)), json },
      Effect.fn(function* ({ id, json, org }) {
        const apiKeys = yield* ApiKeys
        const owner = yield* organization(org)
        const revoked = yield* apiKeys.revoke(owner.id, id)
        if (Option.isNone(revoked)) return yield* new CommandError({ message: `${org} has no live key ${id}.` })
        yield* printRecord(json, { id: revoked.value.id, revoked_at: revoked.value.revokedAt })
      })
    ).pipe(Command.withDescription("Revokes a key; every server knows within a second."))
  ])
)
