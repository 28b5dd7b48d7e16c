export { Gateway, isGatewayPath, isInferencePath } from "./Gateway.ts"
export { gatewaySettings } from "./GatewayConfig.ts"
export { ListenError, listen } from "./listen.ts"
export { gatewayMetrics } from "./metrics.ts"
