import { readFile } from "node:fs/promises"
import { type DigestMismatch, type NotVerified, openDigests, SeatrialClient, signingKeysOf, type VerifiedReceipt, verifyReceipt } from "@seatrial/client"
import { RequestId } from "@seatrial/domain"
import { Console, Effect, type Layer, Option, Schema } from "effect"
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

const readWith = <A>(file: string, decode: (bytes: Buffer) => A) =>
  Effect.tryPromise({
    try: () => readFile(file).then(decode),
    catch: (cause) => new CommandError({ message: `The file ${file} ${whyUnread(cause)}.`, exitCode: 2 })
  })

// As bytes, so that what is no UTF-8 is no silent replacement of it.
const read = (file: string) => readWith(file, (bytes) => new TextDecoder("utf-8", { fatal: true }).decode(bytes))
const readBytes = (file: Option.Option<string>) => (Option.isNone(file) ? Effect.undefined : readWith(file.value, (bytes) => bytes))

const outcome = ({ message, reason }: NotVerified | DigestMismatch) => new CommandError({ message: `NOT VERIFIED (${reason}): ${message}`, exitCode: 3 })

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

interface Opening {
  readonly request: Option.Option<string>
  readonly answer: Option.Option<string>
  readonly salt: Option.Option<string>
}

/** Compares the files with the digests of the receipt, and says which were compared. */
const open = Effect.fnUntraced(function* ({ digests }: VerifiedReceipt, { answer: answerFile, request: requestFile, salt }: Opening) {
  const files = [...(Option.isSome(requestFile) ? ["request"] : []), ...(Option.isSome(answerFile) ? ["answer"] : [])]
  if (Option.isSome(salt) !== files.length > 0) {
    return yield* new CommandError({ message: "Give --salt together with --request, --answer or both.", exitCode: 2 })
  }
  if (Option.isNone(salt)) return ""
  const [request, answer] = yield* Effect.all([readBytes(requestFile), readBytes(answerFile)])
  yield* openDigests({
    ...{ digests, salt: salt.value },
    ...(request === undefined ? {} : { request }),
    ...(answer === undefined ? {} : { answer })
  }).pipe(Effect.mapError(outcome))
  return ` The ${files.join(" and the ")} ${files.length > 1 ? "are" : "is"} as signed.`
})

const isRequestId = Schema.is(RequestId)

/** A file with a receipt; of a request's id, the signed receipt of the API. */
const makeDocument =
  <E>(layerKeyed: Layer.Layer<SeatrialClient, E>) =>
  (receipt: string) =>
    isRequestId(receipt)
      ? SeatrialClient.pipe(
          Effect.flatMap((api) => told(api.org.receipts.signed(receipt))),
          Effect.map((jws) => JSON.stringify(jws)),
          Effect.provide(layerKeyed)
        )
      : read(receipt)

const makeVerify = <E, E2>(layerKeyed: Layer.Layer<SeatrialClient, E>, layerPublic: Layer.Layer<SeatrialClient, E2>) => {
  const keysOf = makeKeys(layerPublic)
  const documentOf = makeDocument(layerKeyed)
  return Command.make(
    "verify",
    {
      receipt: Argument.String("receipt").pipe(
        Argument.withDescription(
          "A file with a signed receipt (receipts get --signed) or with a receipt's JSON and --signature; or a request's id, whose receipt is fetched"
        )
      ),
      keys: textFlag("keys", "File with the installation's public keys (/.well-known/jwks.json); without it they are fetched"),
      signature: textFlag("signature", "Value of the header seatrial-signature, where the file is a receipt's JSON"),
      request: textFlag("request", "File with the body of the request, to compare with the receipt's digest; needs --salt"),
      answer: textFlag("answer", "File with the body of the answer, likewise"),
      salt: textFlag("salt", "Value of the answer's header seatrial-receipt-salt"),
      json: jsonFlag
    },
    Effect.fn(function* ({ json, keys, receipt: source, signature, ...opening }) {
      const document = yield* documentOf(source)
      const known = yield* keysOf(keys)
      const verified = yield* verifyReceipt({
        document,
        keys: known,
        ...(Option.isSome(signature) ? { signature: signature.value } : {})
      }).pipe(Effect.mapError(outcome))
      const opened = yield* open(verified, opening)
      const { issuer, kid, organization, receipt, verbatim } = verified
      const issued =
        issuer === null ? "" : ` Issued by ${escapeUnsafe(issuer)}${organization === null ? "" : ` to the organization ${escapeUnsafe(organization)}`}.`
      yield* Console.error(
        `Verified: signed by the key ${kid}.${issued}${verbatim ? "" : " The file is written otherwise than it was signed, and says the same."}${opened}`
      )
      yield* printRecord(json, receipt)
    })
  ).pipe(
    Command.withDescription("Holds a receipt to its signature. Exit code 3 where they do not belong together."),
    Command.withExamples([
      { command: "seatrial receipts verify receipt.jws --keys jwks.json", description: "Without asking anybody" },
      {
        command: "seatrial receipts verify req_... --request request.json --answer answer.json --salt mTNkb1CmbFcJZtSv2qmhcg",
        description: "Also whether these are the request and its answer"
      }
    ])
  )
}

/** `receipts get` asks as the holder of a key; `receipts verify` needs one only for a request's id, and no API if it is given a file and the keys. */
export const makeReceiptsCommand = <E, E2>(layerKeyed: Layer.Layer<SeatrialClient, E>, layerPublic: Layer.Layer<SeatrialClient, E2>) =>
  Command.make("receipts").pipe(
    Command.withDescription("What served a request, and proof of it."),
    Command.withSubcommands([get.pipe(Command.provide(layerKeyed)), makeVerify(layerKeyed, layerPublic)])
  )
