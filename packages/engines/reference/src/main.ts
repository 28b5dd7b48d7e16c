#!/usr/bin/env node

import { parseArguments, usage } from "./Arguments.ts"
import { boot } from "./Boot.ts"
import { BootFailure } from "./BootFailure.ts"
import { makeServer } from "./HttpServer.ts"
import { log } from "./Log.ts"

const lingerMillis = 300

const start = (words: ReadonlyArray<string>) => {
  if (words.includes("--help")) {
    process.stdout.write(`${usage}\n`)
    return
  }
  const settings = parseArguments(words)
  if (typeof settings === "string") {
    process.stderr.write(`main.ts: error: ${settings}\n`)
    process.exitCode = 2
    return
  }
  process.stdout.on("error", () => {})
  process.on("uncaughtException", (cause) => {
    log.error("main.ts", `EngineCore encountered an issue: ${cause.name} ${cause.message}`)
    process.exit(1)
  })
  let stop: () => void = () => process.exit(130)
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop())
  if (process.env.SEATRIAL_PARENT_PIPE === "1") {
    process.stdin.on("end", () => stop()).on("error", () => stop())
    process.stdin.resume()
  }
  try {
    const booted = boot(settings, log.info)
    const server = makeServer(booted)
    server.on("error", (cause) => {
      log.error("main.ts", `Cannot listen on ${settings.host}:${settings.port}: ${cause.message}`)
      process.exit(1)
    })
    server.listen(settings.port, settings.host, () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : settings.port
      log.info("main.ts", `Starting reference server on http://${settings.host}:${port}`)
      log.info("main.ts", "Application startup complete.")
    })
    stop = () => {
      log.info("main.ts", "Shutting down")
      server.close(() => process.exit(0))
      booted.engine.scheduler.close()
      server.closeIdleConnections()
      setTimeout(() => process.exit(0), lingerMillis).unref()
      stop = () => process.exit(0)
    }
  } catch (cause) {
    const message =
      cause instanceof BootFailure ? cause.message : `Engine core initialization failed: ${cause instanceof Error ? cause.message : String(cause)}`
    log.error("main.ts", message)
    process.exit(1)
  }
}

start(process.argv.slice(2))
