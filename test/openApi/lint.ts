import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Api } from "@seatrial/api"
import { OpenApi } from "effect/http-api"

// Lints the OpenAPI document of the server. Spectral gets a file, because it fails on a pipe that is still empty.
const folder = mkdtempSync(join(tmpdir(), "seatrial-openapi-"))
try {
  const file = join(folder, "openapi.json")
  writeFileSync(file, JSON.stringify(OpenApi.fromApi(Api), null, 2))
  const rules = join(import.meta.dirname, "spectral.yaml")
  const { error, status } = spawnSync("spectral", ["lint", "--ruleset", rules, "--fail-severity", "hint", file], { stdio: "inherit" })
  if (error !== undefined) throw error
  process.exitCode = status ?? 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
