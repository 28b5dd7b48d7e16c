import { KeyId, scopes } from "@seatrial/domain"
import { type ApiKey, ApiKeys } from "@seatrial/store"
import { Clock, Effect, Option, Redacted, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { PlainText } from "../plainText.ts"
import { printRecord, printRows } from "../print.ts"
import { confirm, yesFlag as yes } from "./confirm.ts"
import { emailFlag as email, jsonFlag as json, orgFlag as org, organization, user } from "./organization.ts"

const scopeList = Flag.Literals("scope", scopes).pipe(
  Flag.withDescription("A scope of the key; can be repeated (default: all)"),
  Flag.atLeast(0),
  Flag.map((selected) => (selected.length === 0 ? scopes : selected))
)
const id = Argument.String("id").pipe(Argument.withDescription("The key's ID, key_..."), Argument.withSchema(KeyId))

const unitMillis: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const millisOf = (text: string): number => Number(text.slice(0, -1)) * (unitMillis[text.slice(-1)] ?? Number.NaN)
const overlap = Flag.String("overlap").pipe(
  Flag.withDescription("How long the old secret stays valid: 0s to 7d (s, m, h or d)"),
  Flag.withSchema(
    Schema.String.check(
      Schema.isPattern(/^\d{1,7}[smhd]$/u, { message: "Expected 0s to 7d: a number and s, m, h or d" }),
      Schema.makeFilter((text) => millisOf(text) <= 7 * 86_400_000, { message: "Expected 0s to 7d: a number and s, m, h or d" })
    )
  ),
  Flag.withDefault("1d"),
  Flag.map(millisOf)
)

const view = (key: ApiKey) => ({
  id: key.id,
  name: key.name,
  user_id: key.userId,
  prefix: key.prefix,
  last_four: key.lastFour,
  scopes: key.scopes,
  created_at: key.createdAt,
  expires_at: key.expiresAt,
  revoked_at: key.revokedAt,
  last_used_at: key.lastUsedAt,
  previous_secret_expires_at: key.previousExpiresAt
})

/** A short text for the scopes of a key in a table. */
export const abbreviateScopes = (keyScopes: ReadonlyArray<string>): string =>
  keyScopes.length === scopes.length ? "all" : keyScopes.length === 1 ? (keyScopes[0] ?? "") : `${keyScopes.length} of ${scopes.length}`

const listed = ({ createdAt, expiresAt, id, lastFour, lastUsedAt, name, revokedAt, scopes: keyScopes, userId }: ApiKey) => ({
  id,
  name,
  user_id: userId,
  last_four: lastFour,
  scopes: abbreviateScopes(keyScopes),
  created_at: createdAt,
  expires_at: expiresAt,
  revoked_at: revokedAt,
  last_used_at: lastUsedAt
})

/** The key, or an error that it does not exist. `isLive`: only live keys were searched. */
const orNotFound = (key: Option.Option<ApiKey>, org: string, id: KeyId, isLive: boolean) =>
  Option.isSome(key)
    ? Effect.succeed(key.value)
    : new CommandError({ message: `${org} has no ${isLive ? "live " : ""}key ${id}. \`seatrial admin keys list\` lists its keys.` })

export const keysCommand = Command.make("keys").pipe(
  Command.withDescription("API keys."),
  Command.withSubcommands([
    Command.make(
      "create",
      {
        org,
        email,
        name: Flag.String("name").pipe(Flag.withDescription("Purpose of the key"), Flag.withSchema(PlainText), Flag.withDefault("key")),
        scopes: scopeList,
        days: Flag.Int("expires-in-days").pipe(
          Flag.withDescription("Days until the key expires (default: never)"),
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
        yield* printRecord(json, { ...view(key), secret: Redacted.value(secret) })
      })
    ).pipe(Command.withDescription("Creates an API key and shows its secret once.")),
    Command.make(
      "list",
      { org, json },
      Effect.fn(function* ({ json, org }) {
        const apiKeys = yield* ApiKeys
        const { id } = yield* organization(org)
        const keys = yield* apiKeys.list(id)
        yield* printRows(json, json ? keys.map(view) : keys.map(listed))
      })
    ).pipe(Command.withDescription("Lists an organization's keys, newest first.")),
    Command.make(
      "show",
      { org, id, json },
      Effect.fn(function* ({ id, json, org }) {
        const apiKeys = yield* ApiKeys
        const owner = yield* organization(org)
        yield* printRecord(json, view(yield* orNotFound(yield* apiKeys.find(owner.id, id), org, id, false)))
      })
    ).pipe(Command.withDescription("Shows a key without its secret.")),
    Command.make(
      "rename",
      { org, id, name: Argument.String("name").pipe(Argument.withDescription("Purpose of the key"), Argument.withSchema(PlainText)), json },
      Effect.fn(function* ({ id, json, name, org }) {
        const apiKeys = yield* ApiKeys
        const owner = yield* organization(org)
        yield* printRecord(json, view(yield* orNotFound(yield* apiKeys.rename(owner.id, id, name), org, id, true)))
      })
    ).pipe(Command.withDescription("Changes a live key's name.")),
    Command.make(
      "rotate",
      { org, id, overlap, yes, json },
      Effect.fn(function* ({ id, json, org, overlap, yes }) {
        const apiKeys = yield* ApiKeys
        const owner = yield* organization(org)
        const before = yield* orNotFound(yield* apiKeys.find(owner.id, id), org, id, true)
        const now = yield* Clock.currentTimeMillis
        if (overlap === 0) yield* confirm(yes, `The current secret of ${id} will stop working immediately.`)
        else if (before.previousExpiresAt !== null && Date.parse(before.previousExpiresAt) > now) {
          yield* confirm(yes, `The previous secret of ${id}, which is valid until ${before.previousExpiresAt}, will stop working immediately.`)
        }
        const rotated = yield* apiKeys.rotate(owner.id, id, overlap)
        const key = yield* orNotFound(
          Option.map(rotated, (rotation) => rotation.key),
          org,
          id,
          true
        )
        const secret = Option.match(rotated, { onNone: () => "", onSome: (rotation) => Redacted.value(rotation.secret) })
        yield* printRecord(json, { ...view(key), secret })
      })
    ).pipe(
      Command.withDescription("Gives a live key a new secret and shows it once. The key keeps its ID and scopes. The old secret expires after the overlap.")
    ),
    Command.make(
      "revoke",
      { org, id, yes, json },
      Effect.fn(function* ({ id, json, org, yes }) {
        const apiKeys = yield* ApiKeys
        const owner = yield* organization(org)
        yield* confirm(yes, `The key ${id} of ${org} will stop working permanently.`)
        const key = yield* orNotFound(yield* apiKeys.revoke(owner.id, id), org, id, true)
        yield* printRecord(json, { id: key.id, revoked_at: key.revokedAt })
      })
    ).pipe(Command.withDescription("Revokes a key. The change takes effect on every server within a second."))
  ])
)
