PRAGMA application_id=1702260850;
PRAGMA user_version=1;
BEGIN TRANSACTION;
CREATE TABLE checkpoint (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    partition_id TEXT NOT NULL,
    "offset" TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    writer TEXT NOT NULL,
    completed TEXT NOT NULL,
    isolation TEXT NOT NULL,
    etag TEXT NOT NULL,
    last_modified_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, partition_id)
) WITHOUT ROWID, STRICT;
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','Kafka','kafka:4711',42,'Köln 50%/0a1b/8','[]','none','0000000000000018',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','before the first event','-1',-1,'host-1/0a1b/9','[]','none','0000000000000019',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','begun','4200',42,'Köln 50%/0a1b/8','[]','part','0000000000000013',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','begun by the Spark sink','-1',-1,'spark/0b1c2d3e/7/4f5a6b7c/3','[]','batch','000000000000001b',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','committed by the Spark sink','4200',42,'spark/0b1c2d3e/7/4f5a6b7c/3','[]','none','000000000000001d',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','completed','4200',42,'Köln 50%/0a1b/8','[[44, 46], [50, 50]]','none','0000000000000012',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','everything','4200',42,'Köln 50%/0a1b/8','[[44, 46], [50, 50]]','batch','0000000000000015',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','moved by an operator','4200',42,'operator//0a1b','[]','none','000000000000001a',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','position','4200',42,'Köln 50%/0a1b/8','[]','none','000000000000000e',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','state','4200',42,'Köln 50%/0a1b/8','[]','none','000000000000000f',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','state of an earlier position','4200',42,'Köln 50%/0a1b/8','[]','none','0000000000000011',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','state that was removed','4200',42,'Köln 50%/0a1b/8','[]','none','0000000000000017',1767225600000000);
CREATE TABLE checkpoint_state (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    partition_id TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    state BLOB NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, partition_id)
) STRICT;
INSERT INTO "checkpoint_state" VALUES('contoso.servicebus.windows.net:5671','orders','$default','state',42,X'00FF7B7D');
INSERT INTO "checkpoint_state" VALUES('contoso.servicebus.windows.net:5671','orders','$default','state of an earlier position',40,X'00FF7B7D');
INSERT INTO "checkpoint_state" VALUES('contoso.servicebus.windows.net:5671','orders','$default','everything',40,X'00FF7B7D');
INSERT INTO "checkpoint_state" VALUES('contoso.servicebus.windows.net:5671','orders','$default','committed by the Spark sink',42,X'00FF7B7D');
CREATE TABLE clock (
    id INTEGER PRIMARY KEY CHECK (id = 0),
    boot_id TEXT NOT NULL,
    offset_us INTEGER,
    latest_us INTEGER NOT NULL
) STRICT;
INSERT INTO "clock" VALUES(0,'boot',1767225600000000,1767225600000000);
CREATE TABLE group_record (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    name TEXT NOT NULL,
    content BLOB NOT NULL,
    etag TEXT NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, name)
) STRICT;
INSERT INTO "group_record" VALUES('contoso.servicebus.windows.net:5671','orders','$default','plan',X'7B2276657273696F6E223A317D','000000000000001e');
CREATE TABLE member (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    status TEXT NOT NULL,
    hands_over INTEGER NOT NULL,
    weight REAL NOT NULL,
    capacity INTEGER,
    ordinal INTEGER,
    placement TEXT NOT NULL,
    load TEXT NOT NULL,
    deployment_id TEXT NOT NULL,
    offset_format TEXT NOT NULL,
    version TEXT NOT NULL,
    etag TEXT NOT NULL,
    last_modified_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, owner_id)
) WITHOUT ROWID, STRICT;
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','ACTIVE','a3','active',1,1.0,NULL,NULL,'Even','','','amqp','','0000000000000006',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','AMQP','a4','active',1,1.0,NULL,NULL,'Even','','','amqp','','000000000000000a',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','KAFKA','a4','active',1,1.0,NULL,NULL,'Even','','','kafka','','000000000000000b',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','LEAVING','a3','leaving',1,1.0,NULL,NULL,'Even','','','amqp','','0000000000000008',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','QUEUE','a4','active',1,1.0,NULL,NULL,'Even','','','queue','','000000000000000c',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','RESTARTING','a3','restarting',1,1.0,NULL,NULL,'Even','','','amqp','','0000000000000009',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','STANDBY','a3','standby',1,1.0,NULL,NULL,'Even','','','amqp','','0000000000000007',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','a.b/Köln 50%','a2','standby',0,0.5,3,0,'Ring:bound=1.25','busy 0=0.25,*=0.0004','2026-11-22 (grün)','kafka','1.2.3','0000000000000005',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','defaults','a1','active',1,1.0,NULL,NULL,'Even','','','amqp','','0000000000000004',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-','a5','active',1,1.0,NULL,NULL,'Even','','','amqp','','000000000000000d',1767225600000000);
CREATE TABLE ownership (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    partition_id TEXT NOT NULL,
    owner_id TEXT,
    epoch INTEGER NOT NULL,
    etag TEXT NOT NULL,
    last_modified_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, partition_id)
) WITHOUT ROWID, STRICT;
INSERT INTO "ownership" VALUES('contoso.servicebus.windows.net:5671','orders','$default','0','host-1',7,'0000000000000001',1767225600000000);
INSERT INTO "ownership" VALUES('contoso.servicebus.windows.net:5671','orders','$default','1',NULL,8,'0000000000000002',1767225600000000);
INSERT INTO "ownership" VALUES('contoso.servicebus.windows.net:5671','orders','$default','2','Köln 50%',0,'0000000000000003',1767225600000000);
COMMIT;
