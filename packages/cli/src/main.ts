#!/usr/bin/env node
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { runCommand } from "./runCommand.ts"

NodeRuntime.runMain(runCommand(process.argv.slice(2)))
