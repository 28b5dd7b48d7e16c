import { readFile } from "node:fs/promises"
import { type NotVerified, SeatrialClient, signingKeysOf, verifyReceipt } from "@seatrial/client"
import { Console, Effect, type Layer, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CommandError } from "./CommandError.ts"
import { idArgument, jsonFlag, textFlag } from "./listing.ts"
import { escapeUnsafe } from "./plainText.ts"
import { printRecord } from "./print.ts"
import { told } from "./told.ts"

const get = Command.make(
  "get",
  {
    id: idArgument("The request's id, req_..."),
    json: jsonFlag,
    signed: Flag.Boolean("signed").pipe(Flag.withDescription("Print receipt and signature as one document, to be kept and verified"), Flag.withDefault(false))
  },
  Effect.fn(function* ({ id, json, signed }) {
    const api = yield* SeatrialClient
    if (signed) return yield* printRecord(true, yield* told(api.org.receipts.signed(id)))
    const found = yield* told(api.org.receipts.get(id))
    yield* printRecord(json, found)
  })
).pipe(
  Command.withDescription("Shows a request's receipt: what served it, and what it cost."),
  Command.withExamples([{ command: "seatrial receipts get req_... --signed > receipt.jws", description: "A receipt to keep, with its signature" }])
)

const whyUnread = (cause: unknown): string => {
  if (cause instanceof TypeError) return "is no text in UTF-8"
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined
  if (code === "ENOENT") return "does not exist"
  if (code === "EISDIR") return "is a folder"
  return code === "EACCES" ? "may not be read by you" : `cannot be read (${String(code ?? cause)})`
}

const read = (file: string) =>
  Effect.tryPromise({
    // As bytes, so that what is no UTF-8 is no silent replacement of it.
    try: () => readFile(file).then((bytes) => new TextDecoder("utf-8", { fatal: true }).decode(bytes)),
    catch: (cause) => new CommandError({ message: `The file ${file} ${whyUnread(cause)}.`, exitCode: 2 })
  })

const outcome = ({ message, reason }: NotVerified) => new CommandError({ message: `NOT VERIFIED (${reason}): ${message}`, exitCode: 3 })

/** Keys of a file, else of the API; only the latter looks for one. */
const makeKeys = <E>(layerPublic: Layer.Layer<SeatrialClient, E>) =>
  Effect.fnUntraced(function* (file: Option.Option<string>) {
    if (Option.isNone(file))
      return yield* SeatrialClient.pipe(
        Effect.flatMap((api) => told(api.system.signingKeys())),
        Effect.provide(layerPublic)
      )
    const keys = signingKeysOf(yield* read(file.value))
    if (Option.isNone(keys)) {
      return yield* new CommandError({ message: `${file.value} is no JWK Set, as /.well-known/jwks.json of the installation is.`, exitCode: 2 })
    }
    return keys.value
  })

const makeVerify = <E>(layerPublic: Layer.Layer<SeatrialClient, E>) => {
  const keysOf = makeKeys(layerPublic)
  return Command.make(
    "verify",
    {
      file: Argument.String("file").pipe(Argument.withDescription("A signed receipt (receipts get --signed), or a receipt's JSON with --signature")),
      keys: textFlag("keys", "File with the installation's public keys (/.well-known/jwks.json); without it they are fetched"),
      signature: textFlag("signature", "Value of the header seatrial-signature, where the file is a receipt's JSON"),
      json: jsonFlag
    },
    Effect.fn(function* ({ file, json, keys, signature }) {
      const document = yield* read(file)
      const known = yield* keysOf(keys)
      const { issuer, kid, organization, receipt, verbatim } = yield* verifyReceipt({
        document,
        keys: known,
        ...(Option.isSome(signature) ? { signature: signature.value } : {})
      }).pipe(Effect.mapError(outcome))
      const issued =
        issuer === null ? "" : ` Issued by ${escapeUnsafe(issuer)}${organization === null ? "" : ` to the organization ${escapeUnsafe(organization)}`}.`
      yield* Console.error(
        `Verified: signed by the key ${kid}.${issued}${verbatim ? "" : " The file is written otherwise than it was signed, and says the same."}`
      )
      yield* printRecord(json, receipt)
    })
  ).pipe(
    Command.withDescription("Holds a receipt to its signature. Exit code 3 where they do not belong together."),
    Command.withExamples([{ command: "seatrial receipts verify receipt.jws --keys jwks.json", description: "Without asking anybody" }])
  )
}

/** `receipts get` asks as the holder of a key; `receipts verify` needs none, and no API where it is given the keys. */
export const makeReceiptsCommand = <E, E2>(layerKeyed: Layer.Layer<SeatrialClient, E>, layerPublic: Layer.Layer<SeatrialClient, E2>) =>
  Command.make("receipts").pipe(
    Command.withDescription("What served a request, and proof of it."),
    Command.withSubcommands([get.pipe(Command.provide(layerKeyed)), makeVerify(layerPublic)])
  )
