import { ConfigProvider, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpSerialization, OtlpTracer } from "effect/observability"

/**
 * Exports the program's spans by OTLP over HTTP, as JSON, to `OTEL_EXPORTER_OTLP_ENDPOINT` (or
 * `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`). Exports nothing if neither is set. The other settings of OpenTelemetry
 * exporters also apply: headers, compression, timeouts, `OTEL_BSP_*`, `OTEL_SDK_DISABLED`, `OTEL_RESOURCE_ATTRIBUTES`.
 */
export const layerTracing = (serviceName: string) =>
  OtlpTracer.layerFromConfig({ resource: { serviceName } }).pipe(
    Layer.provide([OtlpSerialization.layerJson, FetchHttpClient.layer]),
    Layer.provide(ConfigProvider.layerAdd(ConfigProvider.fromUnknown({ OTEL_TRACES_EXPORTER: "otlp" })))
  )
