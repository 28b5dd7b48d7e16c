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
  Flag.withDescription("A scope of the key; may be given several times (default: all)"),
  Flag.atLeast(0),
  Flag.map((given) => (given.length === 0 ? scopes : given))
)
const id = Argument.String("id").pipe(Argument.withDescription("The key's id, key_..."), Argument.withSchema(KeyId))

const unitMillis: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const millisOf = (text: string): number => Number(text.slice(0, -1)) * (unitMillis[text.slice(-1)] ?? Number.NaN)
const overlap = Flag.String("overlap").pipe(
  Flag.withDescription("How long the old secret works beside the new one: 0s to 7d (s, m, h or d)"),
  Flag.withSchema(
    Schema.String.check(
      Schema.isPattern(/^\d{1,7}[smhd]$/u, { message: "Expected 0s to 7d: a number and s, m, h or d" }),
      Schema.makeFilter((text) => millisOf(text) <= 7 * 86_400_000, { message: "Expected 0s to 7d: a number and s, m, h or d" })
    )
  ),
  Flag.withDefault("1d"),
  Flag.map(millisOf)
)

const shown = (key: ApiKey) => ({
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

/** All scopes of a key in a word or a number, where they would make a table too wide. */
export const scopesInShort = (given: ReadonlyArray<string>): string =>
  given.length === scopes.length ? "all" : given.length === 1 ? (given[0] ?? "") : `${given.length} of ${scopes.length}`

const listed = ({ createdAt, expiresAt, id, lastFour, lastUsedAt, name, revokedAt, scopes: given, userId }: ApiKey) => ({
  id,
  name,
  user_id: userId,
  last_four: lastFour,
  scopes: scopesInShort(given),
  created_at: createdAt,
  expires_at: expiresAt,
  revoked_at: revokedAt,
  last_used_at: lastUsedAt
})

/** The key in that form, or a sentence where there is none. */
const orNone = (found: Option.Option<ApiKey>, org: string, id: KeyId, live: boolean) =>
  Option.isSome(found)
    ? Effect.succeed(found.value)
    : new CommandError({ message: `${org} has no ${live ? "live " : ""}key ${id}. \`seatrial admin keys list\` shows its keys.` })

export const keysCommand = Command.make("keys").pipe(
  Command.withDescription("API keys."),
  Command.withSubcommands([
    Command.make(
      "create",
      {
        org,
        email,
        name: Flag.String("name").pipe(Flag.withDescription("What the key is for"), Flag.withSchema(PlainText), Flag.withDefault("key")),
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
        yield* printRecord(json, { ...shown(key), secret: Redacted.value(secret) })
      })
    ).pipe(Command.withDescription("Makes an API key and shows its secret this once.")),
    Command.make(
      "list",
      { org, json },
      Effect.fn(function* ({ json, org }) {
        const apiKeys = yield* ApiKeys
        const { id } = yield* organization(org)
        const keys = yield* apiKeys.list(id)
        yield* printRows(json, json ? keys.map(shown) : keys.map(listed))
      })
    ).pipe(Command.withDescription("Lists an organization's keys, newest first.")),
    Command.make(
      "show",
      { org, id, json },
      Effect.fn(function* ({ id, json, org }) {
        const apiKeys = yield* ApiKeys
        const owner = yield* organization(org)
        yield* printRecord(json, shown(yield* orNone(yield* apiKeys.find(owner.id, id), org, id, false)))
      })
    ).pipe(Command.withDescription("Shows a key; never its secret.")),
    Command.make(
      "rename",
      { org, id, name: Argument.String("name").pipe(Argument.withDescription("What the key is for"), Argument.withSchema(PlainText)), json },
      Effect.fn(function* ({ id, json, name, org }) {
        const apiKeys = yield* ApiKeys
        const owner = yield* organization(org)
        yield* printRecord(json, shown(yield* orNone(yield* apiKeys.rename(owner.id, id, name), org, id, true)))
      })
    ).pipe(Command.withDescription("Changes a live key's name.")),
    Command.make(
      "rotate",
      { org, id, overlap, yes, json },
      Effect.fn(function* ({ id, json, org, overlap, yes }) {
        const apiKeys = yield* ApiKeys
        const owner = yield* organization(org)
        const before = yield* orNone(yield* apiKeys.find(owner.id, id), org, id, true)
        const now = yield* Clock.currentTimeMillis
        if (overlap === 0) yield* confirm(yes, `The present secret of ${id} stops working at once.`)
        else if (before.previousExpiresAt !== null && Date.parse(before.previousExpiresAt) > now) {
          yield* confirm(yes, `The secret of ${id} from before its last rotation still works until ${before.previousExpiresAt}; it stops working at once.`)
        }
        const rotated = yield* apiKeys.rotate(owner.id, id, overlap)
        const key = yield* orNone(
          Option.map(rotated, (made) => made.key),
          org,
          id,
          true
        )
        const secret = Option.match(rotated, { onNone: () => "", onSome: (made) => Redacted.value(made.secret) })
        yield* printRecord(json, { ...shown(key), secret })
      })
    ).pipe(Command.withDescription("Gives a live key a new secret, shown this once; its id and scopes stay. The old secret ends after the overlap.")),
    Command.make(
      "revoke",
      { org, id, yes, json },
      Effect.fn(function* ({ id, json, org, yes }) {
        const apiKeys = yield* ApiKeys
        const owner = yield* organization(org)
        yield* confirm(yes, `The key ${id} of ${org} stops working for ever.`)
        const key = yield* orNone(yield* apiKeys.revoke(owner.id, id), org, id, true)
        yield* printRecord(json, { id: key.id, revoked_at: key.revokedAt })
      })
    ).pipe(Command.withDescription("Revokes a key; every server knows within a second."))
  ])
)
