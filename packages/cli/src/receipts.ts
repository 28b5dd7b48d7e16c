import { readFile } from "node:fs/promises"
import { type DigestMismatch, type NotVerified, openDigests, SeatrialClient, signingKeysOf, type VerifiedReceipt, verifyReceipt } from "@seatrial/client"
import { RequestId } from "@seatrial/domain"
import { Console, Effect, type Layer, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { withCommandErrors } from "./apiErrors.ts"
import { CommandError } from "./CommandError.ts"
import { idArgument, jsonFlag, textFlag } from "./listing.ts"
import { escapeUnsafe } from "./plainText.ts"
import { printRecord } from "./print.ts"

const get = Command.make(
  "get",
  {
    id: idArgument("The request's ID, req_..."),
    json: jsonFlag,
    signed: Flag.Boolean("signed").pipe(
      Flag.withDescription("Print the receipt and its signature as one document that can be stored and verified"),
      Flag.withDefault(false)
    )
  },
  Effect.fn(function* ({ id, json, signed }) {
    const api = yield* SeatrialClient
    if (signed) return yield* printRecord(true, yield* withCommandErrors(api.org.receipts.signed(id)))
    const receipt = yield* withCommandErrors(api.org.receipts.get(id))
    yield* printRecord(json, receipt)
  })
).pipe(
  Command.withDescription("Shows the receipt of a request: how it was served, and what it cost."),
  Command.withExamples([{ command: "seatrial receipts get req_... --signed > receipt.jws", description: "Store a receipt with its signature" }])
)

const whyUnread = (cause: unknown): string => {
  if (cause instanceof TypeError) return "is not UTF-8 text"
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined
  if (code === "ENOENT") return "does not exist"
  if (code === "EISDIR") return "is a folder"
  return code === "EACCES" ? "cannot be read: permission denied" : `cannot be read (${String(code ?? cause)})`
}

const readWith = <A>(file: string, decode: (bytes: Buffer) => A) =>
  Effect.tryPromise({
    try: () => readFile(file).then(decode),
    catch: (cause) => new CommandError({ message: `The file ${file} ${whyUnread(cause)}.`, exitCode: 2 })
  })

// Decoded from bytes, so that invalid UTF-8 is an error instead of being replaced silently.
const read = (file: string) => readWith(file, (bytes) => new TextDecoder("utf-8", { fatal: true }).decode(bytes))
const readBytes = (file: Option.Option<string>) => (Option.isNone(file) ? Effect.undefined : readWith(file.value, (bytes) => bytes))

const outcome = ({ message, reason }: NotVerified | DigestMismatch) => new CommandError({ message: `NOT VERIFIED (${reason}): ${message}`, exitCode: 3 })

/** The keys of the file, or the keys of the API if no file is set. */
const makeKeys = <E>(layerPublic: Layer.Layer<SeatrialClient, E>) =>
  Effect.fnUntraced(function* (file: Option.Option<string>) {
    if (Option.isNone(file))
      return yield* SeatrialClient.pipe(
        Effect.flatMap((api) => withCommandErrors(api.system.signingKeys())),
        Effect.provide(layerPublic)
      )
    const keys = signingKeysOf(yield* read(file.value))
    if (Option.isNone(keys)) {
      return yield* new CommandError({ message: `${file.value} is not a JWK Set. Download /.well-known/jwks.json of the installation.`, exitCode: 2 })
    }
    return keys.value
  })

interface DigestFlags {
  readonly request: Option.Option<string>
  readonly answer: Option.Option<string>
  readonly salt: Option.Option<string>
}

/** Compares the files with the digests of the receipt. Returns a sentence that lists the compared files. */
const compareDigests = Effect.fnUntraced(function* ({ digests }: VerifiedReceipt, { answer: answerFile, request: requestFile, salt }: DigestFlags) {
  const files = [...(Option.isSome(requestFile) ? ["request"] : []), ...(Option.isSome(answerFile) ? ["answer"] : [])]
  if (Option.isSome(salt) !== files.length > 0) {
    return yield* new CommandError({ message: "Set --salt together with --request, --answer or both.", exitCode: 2 })
  }
  if (Option.isNone(salt)) return ""
  const [request, answer] = yield* Effect.all([readBytes(requestFile), readBytes(answerFile)])
  yield* openDigests({
    ...{ digests, salt: salt.value },
    ...(request === undefined ? {} : { request }),
    ...(answer === undefined ? {} : { answer })
  }).pipe(Effect.mapError(outcome))
  return ` The ${files.join(" and the ")} ${files.length > 1 ? "match" : "matches"} the receipt.`
})

const isRequestId = Schema.is(RequestId)

/** The text of a receipt file, or the signed receipt of the API if the argument is a request ID. */
const makeDocument =
  <E>(layerKeyed: Layer.Layer<SeatrialClient, E>) =>
  (receipt: string) =>
    isRequestId(receipt)
      ? SeatrialClient.pipe(
          Effect.flatMap((api) => withCommandErrors(api.org.receipts.signed(receipt))),
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
          "A file with a signed receipt (receipts get --signed), a file with the JSON of a receipt (with --signature), or a request ID, whose receipt is fetched"
        )
      ),
      keys: textFlag("keys", "File with the installation's public keys (/.well-known/jwks.json); by default they are fetched"),
      signature: textFlag("signature", "Value of the header seatrial-signature, if the file is the JSON of a receipt"),
      request: textFlag("request", "File with the body of the request, to compare with the digest in the receipt; requires --salt"),
      answer: textFlag("answer", "File with the body of the answer, to compare with the digest in the receipt; requires --salt"),
      salt: textFlag("salt", "Value of the answer's header seatrial-receipt-salt"),
      json: jsonFlag
    },
    Effect.fn(function* ({ json, keys, receipt: source, signature, ...digestFlags }) {
      const document = yield* documentOf(source)
      const known = yield* keysOf(keys)
      const verified = yield* verifyReceipt({
        document,
        keys: known,
        ...(Option.isSome(signature) ? { signature: signature.value } : {})
      }).pipe(Effect.mapError(outcome))
      const comparison = yield* compareDigests(verified, digestFlags)
      const { issuer, kid, organization, receipt, verbatim } = verified
      const issued =
        issuer === null ? "" : ` Issued by ${escapeUnsafe(issuer)}${organization === null ? "" : ` to the organization ${escapeUnsafe(organization)}`}.`
      yield* Console.error(
        `Verified: signed by the key ${kid}.${issued}${verbatim ? "" : " The file's formatting differs from the signed text, but the content is the same."}${comparison}`
      )
      yield* printRecord(json, receipt)
    })
  ).pipe(
    Command.withDescription("Verifies the signature of a receipt. Exits with code 3 if it does not match."),
    Command.withExamples([
      { command: "seatrial receipts verify receipt.jws --keys jwks.json", description: "Verify offline" },
      {
        command: "seatrial receipts verify req_... --request request.json --answer answer.json --salt mTNkb1CmbFcJZtSv2qmhcg",
        description: "Also verify the request and its answer"
      }
    ])
  )
}

/**
 * `receipts get` requires an API key. `receipts verify` requires one only for a request ID, and needs no API for a file
 * with `--keys`.
 */
export const makeReceiptsCommand = <E, E2>(layerKeyed: Layer.Layer<SeatrialClient, E>, layerPublic: Layer.Layer<SeatrialClient, E2>) =>
  Command.make("receipts").pipe(
    Command.withDescription("Receipts of requests, and their signatures."),
    Command.withSubcommands([get.pipe(Command.provide(layerKeyed)), makeVerify(layerKeyed, layerPublic)])
  )
