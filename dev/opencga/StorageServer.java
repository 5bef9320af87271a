import org.opencb.opencga.storage.server.common.AbstractStorageServer;
import org.opencb.opencga.storage.server.rest.RestStorageServer;

/** OpenCGA's storage server, by the storage-configuration.yml in conf of OPENCGA_HOME, until it is ended. */
public final class StorageServer {
    private StorageServer() {
    }

    public static void main(String[] args) throws Exception {
        RestStorageServer server = new RestStorageServer(AbstractStorageServer.getStorageConfiguration());
        server.start();
        server.blockUntilShutdown();
    }
}
