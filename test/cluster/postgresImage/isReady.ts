import { Client } from "pg"

// pg_isready, which npm's Postgres lacks: 0 if the server accepts connections, 1 if it refuses them while it starts, 2 if nothing answers. A wrong password is an answer.
const client = new Client({
  host: process.env.POSTGRES_ADDRESS ?? "",
  port: 5_432,
  user: "seatrial",
  password: "",
  database: "seatrial",
  connectionTimeoutMillis: 2_000
})
client.on("error", () => {})
const codeOf = (cause: unknown) => (typeof cause === "object" && cause !== null && "code" in cause ? cause.code : undefined)
const exit = await client.connect().then(
  () => 0,
  (cause: unknown) => {
    const code = codeOf(cause)
    if (code === "57P03") return 1
    return cause instanceof Error && (typeof code === "string" ? code.startsWith("28") : /SASL|password/.test(cause.message)) ? 0 : 2
  }
)
process.exit(exit)
