import { Config, Schema } from "effect"

const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text

const originsOf = (text: string): ReadonlyArray<string> =>
  text
    .split(",")
    .map((origin) => origin.trim())
    .filter((origin) => origin !== "")

/** Origins as browsers send them: scheme, host and port only. */
const Origins = Schema.String.check(
  Schema.makeFilter((text) => {
    const wrong = originsOf(text).find((origin) => !isOrigin(origin))
    return wrong === undefined ? undefined : `${wrong} is not an origin like https://app.example.com`
  })
)

/** A setting that lists origins, exact and separated by commas; empty by default. There is no `*`. */
export const originSetting = (name: string): Config.Config<ReadonlySet<string>> =>
  Config.schema(Origins, name).pipe(
    Config.withDefault(""),
    Config.map((text): ReadonlySet<string> => new Set(originsOf(text)))
  )

/** What pages of other origins may do (CORS). */
export interface CrossOriginRules {
  readonly origins: ReadonlySet<string>
  /** Response headers that pages may read. */
  readonly exposed: string
  /** Request headers that pages may send; null: all that a preflight asks for. */
  readonly accepted: string | null
}

export interface CrossOriginRequest {
  readonly origin: string | undefined
  /** For a preflight, the methods of its path; otherwise null. */
  readonly methods: string | null
  /** `Access-Control-Request-Headers`. */
  readonly requestedHeaders: string | undefined
}

/** Seconds that a browser may cache the response to a preflight. */
const maxAge = "600"

/** Whether a request is a CORS preflight. */
export const isPreflight = (method: string | undefined, requestedMethod: unknown): boolean => method === "OPTIONS" && requestedMethod !== undefined

/** The response headers for pages of the listed origins, never with credentials; none if no origin is listed. */
export const crossOriginHeaders = (
  { accepted, exposed, origins }: CrossOriginRules,
  { methods, origin, requestedHeaders }: CrossOriginRequest
): Readonly<Record<string, string>> => {
  if (origins.size === 0) return {}
  if (origin === undefined || !origins.has(origin)) return { vary: "Origin" }
  const allowed = { vary: "Origin", "access-control-allow-origin": origin }
  if (methods === null) return { ...allowed, "access-control-expose-headers": exposed }
  const headers = accepted ?? requestedHeaders
  return {
    ...allowed,
    "access-control-allow-methods": methods,
    ...(headers === undefined ? {} : { "access-control-allow-headers": headers }),
    "access-control-max-age": maxAge
  }
}
