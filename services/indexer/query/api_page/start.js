// Shows the service's OpenAPI document. The address is relative, so that a proxy may add a prefix.

SwaggerUIBundle({ url: "openapi.json", dom_id: "#api", deepLinking: true, validatorUrl: null });
