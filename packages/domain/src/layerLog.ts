import { Config, Layer, Logger, References, Schema } from "effect"

/** The levels of `LOG_LEVEL`, from the most detailed to none. */
export const logLevels = ["Trace", "Debug", "Info", "Warn", "Error", "Fatal", "None"] as const

const level = Config.schema(Schema.Literals(logLevels), "LOG_LEVEL").pipe(Config.withDefault("Info" as const))

/** Logs lines of JSON to standard output, from the level that `LOG_LEVEL` names. */
export const layerLog = Layer.mergeAll(Logger.layer([Logger.consoleJson]), Layer.effect(References.MinimumLogLevel, level))
