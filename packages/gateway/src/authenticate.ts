import type { IncomingMessage } from "node:http"
import { clientBlock, inferencePaths, type Network, pathTraits } from "@seatrial/domain"
import type { ApiKeys, Caller } from "@seatrial/store"
import { Effect, Option } from "effect"
import { pathOf } from "./pathOf.ts"
import { addressRateLimited, invalidApiKey, missingApiKey, type Refusal } from "./refusals.ts"

const bearer = /^Bearer +(\S+) *$/i

/** Older Anthropic clients send the key in `x-api-key`. */
const takesOwnHeader = (path: string) => anthropicPaths.some((known) => path.startsWith(known))
const anthropicPaths = inferencePaths.filter((path) => pathTraits[path].isAnthropic)

/** Identifies the caller by its key, from memory if possible. `proxies`: proxies whose `X-Forwarded-For` is trusted. */
export const makeAuthenticate = (keys: Pick<ApiKeys["Service"], "identify">, proxies: ReadonlyArray<Network>) => {
  const addressOf = ({ headers: { "x-forwarded-for": forwarded }, socket }: IncomingMessage) =>
    clientBlock(socket.remoteAddress, typeof forwarded === "string" ? forwarded : undefined, proxies)

  return (request: IncomingMessage): Effect.Effect<Caller, Refusal> | Caller => {
    const { authorization, "x-api-key": own } = request.headers
    const ownHeader = typeof own === "string" && takesOwnHeader(pathOf(request.url)) ? own : undefined
    if (authorization === undefined && ownHeader === undefined) return missingApiKey
    const token = authorization === undefined ? ownHeader : bearer.exec(authorization)?.[1]
    const identified = token === undefined ? Option.none<Caller>() : keys.identify(token, () => addressOf(request))
    if (Effect.isEffect(identified)) {
      return Effect.matchEffect(identified, {
        onFailure: ({ retryAfter }) => addressRateLimited(retryAfter),
        onSuccess: (caller) => (Option.isSome(caller) ? Effect.succeed(caller.value) : invalidApiKey)
      })
    }
    return Option.isSome(identified) ? identified.value : invalidApiKey
  }
}
