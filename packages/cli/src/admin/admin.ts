import { KeyId, scopes } from "@seatrial/domain"
import { ApiKeys, HubConnections, Organizations } from "@seatrial/store"
import { Clock, Config, Effect, Option, Redacted, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { printRecord, printRows } from "../print.ts"
import { jsonFlag as json, orgFlag as org, organization, user } from "./organization.ts"

const Slug = Schema.String.check(Schema.isPattern(/^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/u))
const email = Flag.String("email").pipe(
  Flag.withDescription("The user's e-mail address"),
  Flag.withSchema(Schema.String.check(Schema.isPattern(/^[^\s@]+@[^\s@]+$/u)))
)

const orgs = Command.make("orgs").pipe(
  Command.withDescription("Organizations."),
  Command.withSubcommands([
    Command.make(
      "create",
      {
        slug: Argument.String("slug").pipe(Argument.withDescription("Short name: lower-case letters, digits, hyphens"), Argument.withSchema(Slug)),
        name: Flag.String("name").pipe(Flag.withDescription("Full name"), Flag.optional),
        json
      },
      Effect.fn(function* ({ json, name, slug }) {
        const organizations = yield* Organizations
        const made = yield* organizations
          .create({ slug, name: Option.getOrElse(name, () => slug) })
          .pipe(Effect.catchTag("NameTaken", () => new CommandError({ message: `There is an organization ${slug} already.` })))
        yield* printRecord(json, { ...made })
      })
    ).pipe(Command.withDescription("Makes an organization.")),
    Command.make(
      "list",
      { json },
      Effect.fn(function* ({ json }) {
        const organizations = yield* Organizations
        yield* printRows(
          json,
          (yield* organizations.list).map((row) => ({ ...row }))
        )
      })
    ).pipe(Command.withDescription("Lists the organizations."))
  ])
)

const users = Command.make("users").pipe(
  Command.withDescription("Users and their memberships."),
  Command.withSubcommands([
    Command.make(
      "add",
      {
        org,
        email,
        name: Flag.String("name").pipe(Flag.withDescription("Full name"), Flag.optional),
        role: Flag.Literals("role", ["owner", "member"]).pipe(Flag.withDescription("Role in the organization"), Flag.withDefault("member")),
        json
      },
      Effect.fn(function* ({ email, json, name, org, role }) {
        const organizations = yield* Organizations
        const { id: orgId } = yield* organization(org)
        yield* printRecord(json, { ...(yield* organizations.addUser({ orgId, email, name: Option.getOrElse(name, () => email), role })) })
      })
    ).pipe(Command.withDescription("Adds a user to an organization."))
  ])
)

const scopeList = Flag.Literals("scope", scopes).pipe(
  Flag.withDescription("A scope of the key; may be given several times (default: all)"),
  Flag.atLeast(0),
  Flag.map((given) => (given.length === 0 ? scopes : given))
)

const keys = Command.make("keys").pipe(
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

const purchases = Command.make("purchases").pipe(
  Command.withDescription("Purchases."),
  Command.withSubcommands([
    Command.make(
      "record",
      {
        org,
        micros: Argument.String("micros").pipe(
          Argument.withDescription("Micro-dollars"),
          Argument.withSchema(Schema.String.check(Schema.isPattern(/^\d{1,18}$/u)))
        ),
        json
      },
      Effect.fn(function* ({ json, micros, org }) {
        const organizations = yield* Organizations
        const { id: orgId } = yield* organization(org)
        yield* organizations.recordPurchase({ orgId, micros: BigInt(micros) })
        yield* printRecord(json, { org, micros })
      })
    ).pipe(Command.withDescription("Records a purchase; the first one allows deployments."))
  ])
)

const hubConnections = Command.make("hub-connections").pipe(
  Command.withDescription("Tokens that open private and gated repositories of the model hub."),
  Command.withSubcommands([
    Command.make(
      "set",
      { org, email, token: Flag.Redacted("token").pipe(Flag.withDescription("The hub's access token"), Flag.withFallbackConfig(Config.Redacted("HF_TOKEN"))) },
      Effect.fn(function* ({ email, org, token }) {
        const connections = yield* HubConnections
        const owner = yield* organization(org)
        yield* connections.set(owner.id, (yield* user(owner, email)).id, token)
        yield* printRecord(false, { org, email, connected: true })
      })
    ).pipe(Command.withDescription("Stores a user's token, encrypted.")),
    Command.make(
      "remove",
      { org, email },
      Effect.fn(function* ({ email, org }) {
        const connections = yield* HubConnections
        const owner = yield* organization(org)
        yield* connections.remove(owner.id, (yield* user(owner, email)).id)
        yield* printRecord(false, { org, email, connected: false })
      })
    ).pipe(Command.withDescription("Forgets a user's token."))
  ])
)

export const adminCommand = Command.make("admin").pipe(
  Command.withDescription(
    "Organizations, users, keys, purchases and hub connections, straight in Postgres (DATABASE_URL, else the system started in this folder)."
  ),
  Command.withSubcommands([orgs, users, keys, purchases, hubConnections])
)
