import type { Arguments } from "./Arguments.ts"
import { boot } from "./Boot.ts"
import { BootFailure } from "./BootFailure.ts"
import { makeServer } from "./HttpServer.ts"
import type { Speech } from "./Speech.ts"
import { warmUp } from "./warmUp.ts"

const lingerMillis = 300

/**
 * Runs the engine until a signal, or until the standard input closes if `SEATRIAL_PARENT_PIPE` is 1. Exits with 1 if
 * the engine cannot start.
 */
export const startEngine = (settings: Arguments, speech: Speech) => {
  process.stdout.on("error", () => {})
  process.stderr.on("error", () => {})
  process.on("uncaughtException", (cause) => {
    speech.broke(`${cause.name} ${cause.message}`)
    process.exit(1)
  })
  let stop: () => void = () => process.exit(130)
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop())
  if (process.env.SEATRIAL_PARENT_PIPE === "1") {
    process.stdin.on("end", () => stop()).on("error", () => stop())
    process.stdin.resume()
  }
  try {
    const booted = boot(settings, speech.booting)
    speech.loaded(booted, settings)
    const state = { warm: !speech.warmsUp }
    const server = makeServer(booted, speech, state)
    server.on("error", (cause) => {
      speech.failed(`Cannot listen on ${settings.host}:${settings.port}: ${cause.message}`)
      process.exit(1)
    })
    server.listen(settings.port, settings.host, () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : settings.port
      const announce = () => speech.serving(`http://${settings.host}:${port}`)
      if (state.warm) return announce()
      warmUp(booted.engine, () => {
        state.warm = true
        announce()
      })
    })
    stop = () => {
      speech.stopping()
      server.close(() => process.exit(0))
      booted.engine.scheduler.close()
      server.closeIdleConnections()
      setTimeout(() => process.exit(0), lingerMillis).unref()
      stop = () => process.exit(0)
    }
  } catch (cause) {
    speech.failed(cause instanceof BootFailure ? cause.message : `Engine core initialization failed: ${cause instanceof Error ? cause.message : String(cause)}`)
    process.exit(1)
  }
}
